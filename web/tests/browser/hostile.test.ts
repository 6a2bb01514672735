// Everything that somebody else writes is text on every page: nothing of it runs, loads, or takes the place of what the page says.

import type { Page } from '@playwright/test';
import { visible } from '../../src/lib/visible';
import { PAYLOADS, cut } from './payloads';
import { Receiver } from './receiver';
import { watchRequests } from './requests';
import type { Json, Server } from './server';
import { expect, test } from './test';

test.describe.configure({ timeout: 600_000 });
test.use({ wanted: { keyed: true, flags: ['--webhook-allow', '127.0.0.1:*'] } });

const MEBIBYTE = 1024 * 1024;
/** More text than this is in no page, whatever lies behind it. In characters. */
const TEXT_MAX = 400_000;

/** What the server refuses is no worse for that. */
async function offer(server: Server, method: string, path: string, body: unknown): Promise<Json | null> {
  try {
    return await server.call(method, path, body);
  } catch (cause) {
    if (/: 4\d\d /.test(String(cause))) return null;
    throw cause;
  }
}

/** Goes to a page without loading anything anew, as a link would. */
async function go(page: Page, path: string): Promise<void> {
  await page.evaluate((path) => {
    history.pushState(null, '', path);
    dispatchEvent(new PopStateEvent('popstate'));
  }, path);
}

/** What of the page could run, load, lead away, or be read in another order than it was written. */
async function foreign(page: Page): Promise<string[]> {
  return page.evaluate((most) => {
    const found: string[] = [];
    const turns = /[\u202a-\u202e\u2066-\u2069]/;
    const texts = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text !== null; text = texts.nextNode()) {
      if (turns.test(text.nodeValue ?? '')) found.push(`turns: ${text.parentElement?.outerHTML.slice(0, 200)}`);
    }
    const own = document.querySelectorAll('script, link, base, meta, style, title').length;
    const before = (window as unknown as { own?: number }).own;
    (window as unknown as { own?: number }).own ??= own;
    if (before !== undefined && before !== own) found.push(`${own} elements of the head instead of ${before}`);
    const never = 'iframe, frame, img, object, embed, video, audio, source, marquee, math, template, body script, body style, body link, body meta, [srcdoc], [action], animate';
    for (const element of document.querySelectorAll(never)) found.push(element.outerHTML.slice(0, 200));
    for (const element of document.querySelectorAll('*')) {
      for (const { name, value } of element.attributes) {
        if (name.startsWith('on')) found.push(`${name} on ${element.outerHTML.slice(0, 100)}`);
        // What somebody types is what it is.
        if (turns.test(value) && !(element instanceof HTMLInputElement && name === 'value')) found.push(`turns: ${name} of ${element.outerHTML.slice(0, 200)}`);
      }
    }
    for (const link of document.querySelectorAll('a')) {
      if (link.href !== '' && new URL(link.href, location.href).origin !== location.origin) found.push(link.outerHTML.slice(0, 200));
    }
    const text = document.body.textContent?.length ?? 0;
    if (text > most) found.push(`${text} characters of text`);
    if ('pwned' in window || 'pwned' in Object.prototype) found.push('pwned');
    return found;
  }, TEXT_MAX);
}

/** What the name of a key that turns what follows is shown as. */
const TURNED = '⟨U+202E⟩';

/** The token of a key that may do everything, and whose name turns what follows. */
function hostileKey(server: Server): Promise<string> {
  return server.key('ann\u202e', ['admin', '*']);
}

/** Whether the page still does what somebody asks it to. */
async function responds(page: Page): Promise<void> {
  const theme = page.getByRole('button', { name: /^Theme: / });
  const before = await theme.getAttribute('aria-label');
  await theme.click();
  await expect(theme).not.toHaveAttribute('aria-label', before ?? '');
}

/** Messages in a queue, each hostile in one field, and all of those that the server took. */
async function seedMessages(server: Server): Promise<Map<string, string>> {
  await server.create('bodies');
  const bodies = new Map<string, string>();
  const fields: ((payload: string) => object)[] = [
    (payload) => ({ body: payload }),
    (payload) => ({ body: 'x', type: cut(payload, 128) }),
    (payload) => ({ body: 'x', source: cut(payload, 128) }),
    (payload) => ({ body: 'x', fairness_key: cut(payload, 128) }),
    (payload) => ({ body: 'x', dedup_key: cut(payload, 256) }),
    (payload) => ({ body: 'x', content_type: cut(payload, 256) }),
    (payload) => ({ body: 'x', headers: { 'x-hostile': payload, [cut(payload, 100).replace(/[^!-~]/g, '') || 'x']: 'name' } }),
  ];
  for (const [at, field] of fields.entries()) {
    for (const payload of PAYLOADS) {
      const enqueued = await offer(server, 'POST', '/v1/queues/bodies/messages', field(payload));
      if (at === 0 && enqueued) bodies.set(enqueued.id, payload);
    }
  }
  return bodies;
}

/** Leases, failures and dead letters with hostile consumers, errors and checkpoints. */
async function seedFailures(server: Server): Promise<void> {
  await server.create('held');
  await server.create('failed', { retry: { max_attempts: 9 } });
  await server.create('graves');
  for (const payload of PAYLOADS) {
    const consumer = cut(payload, 256);
    const error = cut(payload, 1024);
    const checkpoint_base64 = Buffer.from(cut(payload, 4_000)).toString('base64');
    for (const queue of ['held', 'failed', 'graves']) {
      if ((await offer(server, 'POST', `/v1/queues/${queue}/messages`, { body: payload })) === null) continue;
      const leased = (await offer(server, 'POST', `/v1/queues/${queue}/lease`, { consumer })) ?? (await server.post(`/v1/queues/${queue}/lease`));
      const receipt = leased.messages[0]?.receipt;
      if (queue === 'held') await offer(server, 'POST', '/v1/leases/extend', { receipt, checkpoint_base64 });
      if (queue === 'failed') await offer(server, 'POST', '/v1/leases/nack', { receipt, error, checkpoint_base64, delay_ms: 60_000 });
      if (queue === 'graves') await offer(server, 'POST', '/v1/leases/bury', { receipt, error });
    }
  }
}

/** Operations with hostile reasons, keys with hostile names, subscriptions with hostile filters. */
async function seedNames(server: Server): Promise<void> {
  await server.create('returned');
  for (const [at, payload] of PAYLOADS.entries()) {
    const id = await server.die('returned', 'x');
    const note = cut(payload, 1024);
    await offer(server, 'POST', '/v1/queues/returned/dead/redrive', { filter: { ids: [id] }, by: note, reason: note });
    await offer(server, 'POST', '/v1/keys', { name: cut(payload, 80), grants: [{ scope: 'read', queues: 'x' }] });
    await offer(server, 'POST', '/v1/subscriptions', {
      id: `filter-${at}`, pattern: `hostile.${at}`, filter: { 'x-hostile': [payload] }, target: { kind: 'queue', queue: 'returned' },
    });
  }
}

/** Webhooks whose receiver answers with what it is sent, as many as are remembered of each. */
async function seedWebhooks(server: Server, receiver: Receiver): Promise<string[]> {
  const ids: string[] = [];
  for (let from = 0; from < PAYLOADS.length; from += 20) {
    const id = `hook-${from}`;
    ids.push(id);
    await server.post('/v1/subscriptions', { id, pattern: `hooks.${from}`, target: { kind: 'webhook', url: receiver.url }, retry: { max_attempts: 1 }, breaker: null, max_in_flight: 1 });
    for (const payload of PAYLOADS.slice(from, from + 20)) {
      const before = receiver.received.length;
      receiver.answer = { status: 500, headers: { 'content-type': 'text/html', 'x-hostile': payload.replace(/[^ -~]/g, '?').slice(0, 500) }, body: payload };
      const path = `/v1/topics/hooks.${from}/events`;
      const sent = (await offer(server, 'POST', path, { events: [{ body: payload, headers: { 'x-hostile': payload } }] })) ?? (await offer(server, 'POST', path, { events: [{ body: payload }] }));
      if (sent !== null) await expect.poll(() => receiver.received.length).toBeGreaterThan(before);
    }
  }
  return ids;
}

test('hostile bodies are text on the page of each message, and hostile names in every list', async ({ server, dashboard, page }) => {
  expect(PAYLOADS.length).toBeGreaterThanOrEqual(60);
  const bodies = await seedMessages(server);
  expect(bodies.size).toBeGreaterThanOrEqual(PAYLOADS.length - 2);
  await seedFailures(server);
  const settled = watchRequests(page);
  await dashboard.open('/');
  await dashboard.signIn(server.token ?? '');
  expect(await foreign(page)).toEqual([]);
  for (const path of ['/queues', '/queues/bodies', '/queues/graves', '/messages?queue=bodies', '/messages?queue=graves', '/messages?queue=failed', '/leases', '/dead', '/dead?queue=graves', '/consumers', '/events']) {
    await go(page, path);
    await settled();
    await expect(page.locator('h1')).toBeVisible();
    expect(await foreign(page), path).toEqual([]);
    await responds(page);
  }
  for (const [id, payload] of bodies) {
    await go(page, `/queues/bodies/messages/${id}`);
    const wanted = visible(payload.slice(0, 20_000));
    await expect.poll(() => page.locator('pre').evaluateAll((all) => all.map((one) => one.textContent)), { message: JSON.stringify(payload.slice(0, 80)) }).toContain(wanted);
    expect(await foreign(page), payload.slice(0, 80)).toEqual([]);
  }
  for (const queue of ['held', 'failed', 'graves']) {
    const { messages } = await server.get(`/v1/queues/${queue}/messages?limit=1000`);
    for (const message of messages) {
      await go(page, `/queues/${queue}/messages/${message.id}`);
      await settled();
      await expect(page.locator('h1')).toBeVisible();
      expect(await foreign(page), `${queue} ${message.id}`).toEqual([]);
    }
  }
});

test('hostile errors are text in every failure group, and a hostile filter is the filter that is shown', async ({ server, dashboard, page }) => {
  dashboard.allow(/status of 4\d\d/);
  await server.create('graves');
  for (const payload of PAYLOADS) {
    await server.enqueue('graves', { body: 'x', ...((await offer(server, 'POST', '/v1/queues/graves/messages', { body: 'y', type: cut(payload, 128) })) ? { type: cut(payload, 128) } : {}) });
    const leased = await server.lease('graves', { limit: 10 });
    for (const { receipt } of leased) await offer(server, 'POST', '/v1/leases/bury', { receipt, error: cut(payload, 1024) });
  }
  const settled = watchRequests(page);
  await dashboard.open('/dead');
  await dashboard.signIn(await hostileKey(server));
  await settled();
  await dashboard.pictures('hostile-dead');
  const { groups } = await server.get('/v1/queues/graves/dead/groups?limit=1000');
  expect(groups.length).toBeGreaterThan(30);
  for (const group of groups) {
    await go(page, `/dead?queue=graves&fingerprint=${group.fingerprint}`);
    if (group.sample !== '') {
      await expect(page.getByRole('region', { name: 'The last error of the newest' })).toHaveText(visible(group.sample), { useInnerText: false });
    }
    await settled();
    expect(await foreign(page), group.sample.slice(0, 80)).toEqual([]);
  }
  for (const payload of PAYLOADS.filter((one) => one.length < 1_100)) {
    const query = new URLSearchParams({ queue: 'graves', redrive: 'preview', type: payload, error: payload, why: payload });
    await go(page, `/dead?${query}`);
    const wizard = page.getByRole('dialog', { name: 'Redrive dead letters' });
    const shown = visible(payload).trim();
    if (/^[\w.,:+-]+$/.test(shown)) await expect(wizard.getByTestId('wizard-filter')).toContainText(`type:${shown}`);
    await expect(wizard.getByTestId('wizard-filter')).toContainText('type:');
    await settled();
    expect(await foreign(page), payload.slice(0, 80)).toEqual([]);
    // To the last step before it is done, which says who asks and why.
    for (const step of ['rate', 'start']) {
      await go(page, `/dead?${new URLSearchParams({ queue: 'graves', redrive: step, why: payload })}`);
      await expect(wizard.getByText(step === 'rate' ? 'Kept with each message' : 'Retry requested by')).toContainText(`ann${TURNED}`);
      await settled();
      expect(await foreign(page), `${step} ${payload.slice(0, 80)}`).toEqual([]);
    }
    await expect.poll(() => wizard.getByTestId('wizard-note').textContent()).toBe(`Retry requested by ann${TURNED}: ${visible(Buffer.from(payload).toString())}`);
  }
});

test('a hostile filter of messages is the one that is asked about', async ({ server, dashboard, page }) => {
  await server.create('orders');
  const nasty = 'user\u202e\u2066// admin\u2069';
  await server.die('orders', nasty, { body: 'x', type: nasty, source: nasty, fairness_key: nasty });
  await dashboard.open(`/messages?${new URLSearchParams({ queue: 'orders', error: nasty })}`);
  await dashboard.signIn(await hostileKey(server));
  const box = page.getByRole('combobox', { name: 'Filter' });
  await expect(page.locator('tr.item')).toHaveCount(1);
  for (const part of ['type', 'source', 'key']) {
    await box.fill(`${part}:`);
    await expect(page.getByRole('option')).toHaveText([visible(nasty)]);
    expect(await foreign(page), `completions of ${part}`).toEqual([]);
  }
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await page.keyboard.press('a');
  await expect(page.getByText('All 1 that match are chosen')).toBeVisible();
  for (const verb of ['redrive', 'discard'] as const) {
    await page.keyboard.press(verb === 'redrive' ? 'r' : 'd');
    await page.getByRole('button', { name: 'Go on' }).click();
    await expect(page.getByTestId('confirm-count')).toHaveText('1');
    await expect(page.getByTestId('confirm-filter')).toHaveText(`${verb === 'redrive' ? 'state:dead ' : ''}error:${JSON.stringify(visible(nasty))}`);
    expect(await foreign(page), verb).toEqual([]);
    await page.getByRole('button', { name: 'Cancel' }).click();
  }
});

test('hostile reasons, names of keys, filters of subscriptions and answers of endpoints are text', async ({ server, dashboard, page }) => {
  const receiver = await Receiver.start();
  await seedNames(server);
  const hooks = await seedWebhooks(server, receiver);
  await receiver.end();
  const settled = watchRequests(page);
  await dashboard.open('/');
  await dashboard.signIn(server.token ?? '');
  await settled();
  expect(await foreign(page)).toEqual([]);
  const { operations } = await server.get('/v1/operations?limit=1000');
  expect(operations.length).toBeGreaterThan(50);
  const { subscriptions } = await server.get('/v1/subscriptions?limit=1000');
  expect(subscriptions.length).toBeGreaterThan(50);
  const { keys } = await server.get('/v1/keys?limit=1000');
  expect(keys.length).toBeGreaterThan(40);
  const paths = [
    '/operations', '/subscriptions', '/access', '/access?show=audit', '/settings',
    ...operations.map((one: Json) => `/operations/${one.id}`),
    ...subscriptions.map((one: Json) => `/subscriptions/${one.id}`),
  ];
  for (const path of paths) {
    await go(page, path);
    await settled();
    await expect(page.locator('h1')).toBeVisible();
    expect(await foreign(page), path).toEqual([]);
  }
  for (const id of hooks) {
    await go(page, `/subscriptions/${id}`);
    const buttons = page.getByRole('button', { name: 'Request and response' });
    await expect(buttons).not.toHaveCount(0);
    for (let at = 0; at < (await buttons.count()); at++) {
      await buttons.nth(at).click();
      await expect(page.getByRole('region', { name: 'Body of the response' })).toBeVisible();
      expect(await foreign(page), `${id} ${at}`).toEqual([]);
      await buttons.nth(at).click();
    }
  }
  await go(page, '/subscriptions/hook-0');
  await page.getByRole('button', { name: 'Request and response' }).last().click();
  await expect(page.getByRole('region', { name: 'Body of the response' })).toHaveText(PAYLOADS[0] ?? '');
  await dashboard.pictures('hostile-subscription');
});

test('a line of a mebibyte, and bytes that are no text, freeze nothing', async ({ server, dashboard, page }) => {
  await server.create('large');
  const lines: [name: string, message: object][] = [
    ['letters', { body: 'A'.repeat(MEBIBYTE) }],
    ['tags', { body: '<b>'.repeat(MEBIBYTE / 3) }],
    ['marks', { body: 'Z\u0351\u036b'.repeat(MEBIBYTE / 5) }],
    ['turned', { body: '\u202e'.repeat(MEBIBYTE / 3) }],
    ['emoji', { body: '👩‍👩‍👧‍👦'.repeat(MEBIBYTE / 25) }],
    ['nested', { body: '['.repeat(MEBIBYTE), content_type: 'application/json' }],
    ['digits', { body: `{"n":${'9'.repeat(MEBIBYTE - 10)}}`, content_type: 'application/json' }],
    ['bytes', { body_base64: Buffer.from(Array.from({ length: MEBIBYTE }, (_, at) => (at * 7919) % 256)).toString('base64') }],
    ['torn', { body_base64: Buffer.from([0xc3, 0x28, 0xa0, 0xa1, 0xe2, 0x28, 0xa1, 0xf0, 0x28, 0x8c, 0xbc, 0xff, 0xfe, 0x00]).toString('base64') }],
  ];
  const ids = new Map<string, string>();
  for (const [name, message] of lines) ids.set(name, await server.enqueue('large', message));
  const settled = watchRequests(page);
  await dashboard.open('/messages?queue=large');
  await dashboard.signIn(server.token ?? '');
  await settled();
  expect(await foreign(page)).toEqual([]);
  await responds(page);
  for (const [name, id] of ids) {
    await go(page, `/queues/large/messages/${id}`);
    await settled();
    await expect(page.locator('pre').first()).toBeVisible();
    await responds(page);
    expect(await foreign(page), name).toEqual([]);
  }
  await go(page, `/queues/large/messages/${ids.get('letters')}`);
  const body = page.locator('pre').filter({ hasText: 'AAAA' }).first();
  await expect.poll(async () => (await body.textContent())?.length).toBe(20_000);
  await page.getByRole('button', { name: /Show more/ }).click();
  await expect.poll(async () => (await body.textContent())?.length).toBe(40_000);
});

test('a hostile address is no page, or a page that says so', async ({ server, dashboard, page }) => {
  dashboard.allow(/status of 4\d\d/);
  const settled = watchRequests(page);
  await dashboard.open('/');
  await dashboard.signIn(server.token ?? '');
  for (const payload of PAYLOADS.filter((one) => one.length < 300)) {
    const part = encodeURIComponent(Buffer.from(payload).toString());
    for (const path of [`/queues/${part}`, `/queues/x/messages/${part}`, `/operations/${part}`, `/subscriptions/${part}`, `/messages?queue=${part}&type=${part}`, `/dead?queue=${part}`, `/leases?queue=${part}&consumer=${part}`, `/queues?name=${part}`, `/consumers?name=${part}`, `/events?queue=${part}&type=${part}`, `/subscriptions?text=${part}`, `/access?show=audit&what=${part}`]) {
      await go(page, path);
      await settled();
      expect(await foreign(page), path).toEqual([]);
    }
  }
  await expect(page.locator('h1')).toBeVisible();
});
