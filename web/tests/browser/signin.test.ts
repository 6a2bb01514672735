// Signing in: the key is shown to the server in a header, and is nowhere else.

import type { Page } from '@playwright/test';
import { watchRequests } from './requests';
import { expect, test } from './test';

test.use({ wanted: { keyed: true } });

/** Everything that a key must not be in: addresses, what is kept, and the page. */
async function whereIs(page: Page, key: string): Promise<string[]> {
  return page.evaluate((key) => {
    const found: string[] = [];
    if (document.documentElement.outerHTML.includes(key)) found.push('page');
    if ([...document.querySelectorAll('input')].some((input) => input.value.includes(key))) found.push('input');
    if (JSON.stringify({ ...localStorage }).includes(key)) found.push('device');
    if (JSON.stringify({ ...sessionStorage }).includes(key)) found.push('tab');
    if (document.cookie.includes(key)) found.push('cookie');
    if (location.href.includes(key) || history.length === 0) found.push('address');
    return found;
  }, key);
}

test('a wrong key is refused in words, and nothing of it is kept', async ({ server, dashboard, page }) => {
  dashboard.allow(/status of 401/);
  await dashboard.open('/');
  await dashboard.pictures('sign-in');
  const wrong = `${(server.token ?? '').slice(0, -4)}0000`;
  await page.getByLabel('API key').fill(wrong);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('alert')).toBeVisible();
  await expect(page.getByLabel('API key')).toHaveValue('');
  expect(await whereIs(page, wrong)).toEqual([]);
});

test('the right key lets in, stays in this tab, and is in no address and nowhere in the page', async ({ server, dashboard, page, context }) => {
  await server.create('orders');
  const addresses: string[] = [];
  page.on('request', (request) => addresses.push(request.url()));
  await dashboard.open('/queues');
  const key = server.token ?? '';
  await dashboard.signIn(key);
  await expect(page.getByRole('button', { name: 'Live' })).toHaveAttribute('data-state', 'live');
  await expect(page.getByText('bootstrap · administrator')).toBeVisible();
  for (const path of ['/', '/queues', '/messages', '/leases', '/dead', '/operations', '/subscriptions', '/consumers', '/events', '/access', '/access?show=audit', '/settings']) {
    await page.goto(server.origin + path);
    await expect(page.locator('h1')).toBeVisible();
    expect(await whereIs(page, key), path).toEqual(['tab']);
  }
  expect(addresses.length).toBeGreaterThan(20);
  const secret = key.split('_').at(-1) ?? key;
  expect(addresses.filter((address) => address.includes(secret))).toEqual([]);
  // Another tab does not have it.
  const other = await context.newPage();
  await other.goto(server.origin);
  await expect(other.getByLabel('API key')).toBeVisible();
  await other.close();
});

test('a key that is to be kept is kept on the device, until somebody signs out', async ({ server, dashboard, page }) => {
  await dashboard.open('/');
  await page.getByLabel('Keep it on this device').check();
  await dashboard.signIn(server.token ?? '');
  expect(await whereIs(page, server.token ?? '')).toEqual(['device']);
  await page.reload();
  await expect(page.getByRole('navigation', { name: 'Pages' })).toBeVisible();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await expect(page.getByLabel('API key')).toBeVisible();
  expect(await whereIs(page, server.token ?? '')).toEqual([]);
  await page.reload();
  await expect(page.getByLabel('API key')).toBeVisible();
});

test('a key that is revoked while somebody is in leads back to the door, with the reason', async ({ server, dashboard, page }) => {
  dashboard.allow(/status of 401/);
  await server.create('orders');
  const token = await server.key('ann', ['manage', '*']);
  await dashboard.open('/queues');
  await dashboard.signIn(token);
  await expect(page.getByRole('button', { name: 'Live' })).toHaveAttribute('data-state', 'live');
  const { keys } = await server.get('/v1/keys');
  await server.post(`/v1/keys/${keys[0].id}/revoke`);
  await expect(page.getByLabel('API key')).toBeVisible();
  await expect(page.getByRole('alert')).toContainText('revoked');
  expect(await whereIs(page, token)).toEqual([]);
  // Another key goes on where it was.
  await dashboard.signIn(server.token ?? '');
  await expect(page).toHaveURL(/\/queues$/);
});

test('a key that ended while the page was away is forgotten, and the next one is the one that is kept', async ({ server, dashboard, page }) => {
  dashboard.allow(/status of 401/);
  const token = await server.key('ann', ['manage', '*']);
  await dashboard.open('/queues');
  await dashboard.signIn(token);
  expect(await whereIs(page, token)).toEqual(['tab']);
  await page.goto(`${server.origin}/openapi.json`);
  const { keys } = await server.get('/v1/keys');
  await server.post(`/v1/keys/${keys[0].id}/revoke`);
  await dashboard.open('/queues');
  await expect(page.getByRole('alert')).toContainText('revoked');
  expect(await whereIs(page, token)).toEqual([]);
  await page.getByLabel('Keep it on this device').check();
  await dashboard.signIn(server.token ?? '');
  expect(await whereIs(page, server.token ?? '')).toEqual(['device']);
  await page.reload();
  await expect(page.getByText('bootstrap · administrator')).toBeVisible();
});

test('a key that is kept on the device takes the place of one that is kept in the tab', async ({ server, dashboard, page }) => {
  dashboard.allow(/status of 503/);
  const token = await server.key('ann', ['manage', '*']);
  await dashboard.open('/queues');
  await dashboard.signIn(token);
  // A server that cannot say who it is leaves the key where it is, and asks for one.
  await page.route('**/v1/whoami', (route) => route.fulfill({ status: 503, json: {} }));
  await page.reload();
  await expect(page.getByLabel('API key')).toBeVisible();
  expect(await whereIs(page, token)).toEqual(['tab']);
  await page.unroute('**/v1/whoami');
  await page.getByLabel('Keep it on this device').check();
  await dashboard.signIn(server.token ?? '');
  expect(await whereIs(page, token)).toEqual([]);
  await page.reload();
  await expect(page.getByText('bootstrap · administrator')).toBeVisible();
});

test('the stream of a server with keys is live for who has one', async ({ server, dashboard, page }) => {
  await server.create('orders');
  await dashboard.open('/events');
  await dashboard.signIn(await server.key('watcher', ['read', 'orders']));
  await expect(page.getByRole('button', { name: 'Live' })).toHaveAttribute('data-state', 'live');
  await server.enqueue('orders');
  await expect(page.locator('tr.item')).toContainText('orders');
});

test('who may only read has no button that writes, on no page', async ({ server, dashboard, page }) => {
  test.slow();
  await server.create('orders');
  const dead = await server.die('orders', 'card declined');
  const ready = await server.enqueue('orders');
  const leased = await server.enqueue('orders');
  await server.lease('orders', { consumer: 'worker-1' });
  await server.die('orders', 'card declined');
  const operation = await server.post('/v1/queues/orders/dead/redrive', { filter: { ids: [dead] }, rate: 1 });
  await server.post('/v1/subscriptions', { id: 'auditor', pattern: 'orders.*', target: { kind: 'queue', queue: 'orders' } });
  const { groups } = await server.get('/v1/queues/orders/dead/groups');
  const paths = [
    '/', '/queues', '/queues/orders', '/messages?queue=orders', '/leases', '/dead', `/dead?queue=orders&fingerprint=${groups[0].fingerprint}`,
    '/dead?redrive=filter', '/dead?queue=orders&redrive=filter', '/dead?queue=orders&redrive=preview', '/dead?queue=orders&redrive=start',
    `/dead?queue=orders&redrive=progress&operation=${operation.id}`,
    '/operations', `/operations/${operation.id}`, '/subscriptions', '/subscriptions/auditor', '/subscriptions/auditor?redrive=filter', '/subscriptions/auditor?redrive=start',
    '/consumers', '/events', '/settings',
    ...[dead, ready, leased].map((id) => `/queues/orders/messages/${id}`),
  ];

  const settled = watchRequests(page);
  /** What the buttons, and what else acts, of each page are called. */
  const walk = async (): Promise<Map<string, string[]>> => {
    const found = new Map<string, string[]>();
    for (const path of paths) {
      await page.goto(server.origin + path);
      await expect(page.locator('h1')).toBeVisible();
      await settled();
      const names = await page.locator('main').locator('button:visible, a.button:visible, input[type=submit]:visible, [role=button]:visible, summary:visible').evaluateAll((all) =>
        all.map((one) => (one.getAttribute('aria-label') ?? one.textContent ?? '').trim().replace(/\s+/g, ' ')),
      );
      found.set(path, names);
    }
    return found;
  };

  await dashboard.open('/');
  await dashboard.signIn(server.token ?? '');
  const all = await walk();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await dashboard.signIn(await server.key('watcher', ['read', '*']));
  const some = await walk();

  const writes = /redrive|discard|purge|pause|resume|go on|create|delete|edit|save|disable|enable|rotate|secret|revoke|trip|reset|release|extend|move|reschedule|retry|resend|replay|stop|cancel|expire|requeue/i;
  let hidden = 0;
  for (const path of paths) {
    const mine = some.get(path) ?? [];
    expect(mine.filter((name) => writes.test(name)), `buttons that write, on ${path}`).toEqual([]);
    // Who may only read has no button that who may do everything does not have.
    const theirs = new Set(all.get(path));
    expect(mine.filter((name) => !theirs.has(name) && !/\d/.test(name)), `buttons of their own, on ${path}`).toEqual([]);
    hidden += (all.get(path) ?? []).filter((name) => writes.test(name)).length;
  }
  expect(hidden).toBeGreaterThan(10);
});

test.describe('open reading', () => {
  test.use({ wanted: { keyed: true, flags: ['--open-reading'] } });

  test('who has no key sees counts, and no names', async ({ server, dashboard, page }) => {
    await server.create('secret-orders');
    await dashboard.open('/');
    await expect(page.getByTestId('open-enqueue')).toHaveText('0');
    await server.enqueue('secret-orders');
    await server.enqueue('secret-orders');
    await server.die('secret-orders', 'secret error');
    await expect(page.getByTestId('open-enqueue')).toHaveText('3');
    await expect(page.getByTestId('open-move_to_dlq')).toHaveText('1');
    expect(await page.content()).not.toContain('secret-orders');
    await dashboard.pictures('sign-in-open');
    await dashboard.signIn(server.token ?? '');
    await expect(page.getByRole('button', { name: 'Live' })).toHaveAttribute('data-state', 'live');
  });
});

test('without open reading there are no counts, and nothing is asked for that would be refused', async ({ dashboard, page }) => {
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  await dashboard.open('/');
  await expect(page.getByLabel('API key')).toBeVisible();
  await expect(page.getByTestId('open-enqueue')).toHaveCount(0);
  expect(asked).not.toContain('/v1/events');
});
