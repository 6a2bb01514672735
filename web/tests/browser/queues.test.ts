// The table of queues: found, ordered, looked at, and stopped.

import type { Page } from '@playwright/test';
import { type Server, expect, test } from './test';

const row = (page: Page, queue: string) => page.locator(`tr[data-key="${queue}"]`);
const names = (page: Page) => page.locator('tr.item').evaluateAll((rows) => rows.map((one) => one.getAttribute('data-key')));
const question = (page: Page) => page.getByRole('dialog');

/** A shop: one queue that is busy, one that fails, one that stands still. */
async function shop(server: Server): Promise<void> {
  await server.enqueueMany('orders', 40, (at) => ({ body: `order ${at}` }));
  for (const { receipt } of await server.lease('orders', { limit: 5 })) await server.ack(receipt);
  await server.lease('orders', { limit: 3 });
  await server.enqueueMany('mail', 7, (at) => ({ body: `mail ${at}` }));
  await server.die('mail', 'no such user');
  await server.create('payments', { breaker: {} });
  await server.enqueueMany('payments', 12, (at) => ({ body: `payment ${at}` }));
  await server.enqueue('payments', { body: 'later', delay_ms: 3_600_000 });
  await server.create('archive');
}

async function sample(server: Server): Promise<void> {
  const before = (await server.get('/v1/queues/orders/history')).samples.length;
  await server.advance(10_000);
  await expect.poll(async () => (await server.get('/v1/queues/orders/history')).samples.length).toBeGreaterThan(before);
}

/** Whether everything that is not a table of its own fits a page of 320 pixels, which is 1280 at 400 %. */
async function fits(page: Page): Promise<void> {
  await page.setViewportSize({ width: 320, height: 640 });
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(320);
}

test('every number is exact, and leads to its list', async ({ server, dashboard, page }) => {
  await shop(server);
  await dashboard.open('/queues');
  await expect(page.getByTestId('total')).toHaveText('4 queues');
  const orders = row(page, 'orders');
  await expect(orders.getByRole('link', { name: '32' })).toHaveAttribute('href', '/messages?queue=orders&state=ready');
  await expect(orders.getByRole('link', { name: '3', exact: true })).toHaveAttribute('href', '/leases?queue=orders');
  await expect(row(page, 'payments').getByRole('link', { name: '1', exact: true })).toHaveAttribute('href', '/messages?queue=payments&state=delayed');
  await row(page, 'mail').getByRole('link', { name: '1', exact: true }).click();
  await expect(page).toHaveURL(/\/dead\?queue=mail$/);
});

test('filter and order are in the address, and a reload gives the same', async ({ server, dashboard, page }) => {
  await shop(server);
  await sample(server);
  await dashboard.open('/queues');
  await expect.poll(() => names(page)).toEqual(['archive', 'mail', 'orders', 'payments']);

  await page.getByRole('button', { name: 'Ready' }).click();
  await expect(page).toHaveURL(/sort=ready&desc=true/);
  await expect.poll(() => names(page)).toEqual(['orders', 'payments', 'mail', 'archive']);
  await expect(page.getByRole('columnheader', { name: 'Ready' })).toHaveAttribute('aria-sort', 'descending');
  await expect(page.getByTestId('order')).toContainText('The order compares the last samples');
  await page.getByRole('button', { name: 'Ready' }).click();
  await expect.poll(() => names(page)).toEqual(['archive', 'mail', 'payments', 'orders']);

  await page.keyboard.press('/');
  await expect(page.getByRole('searchbox', { name: 'Part of the name' })).toBeFocused();
  await page.keyboard.type('a');
  await expect(page).toHaveURL(/name=a/);
  await expect.poll(() => names(page)).toEqual(['archive', 'mail', 'payments']);
  await page.reload();
  await expect.poll(() => names(page)).toEqual(['archive', 'mail', 'payments']);
  await expect(page.getByRole('searchbox', { name: 'Part of the name' })).toHaveValue('a');

  await page.getByRole('searchbox').fill('nothing-like-it');
  await expect(page.getByText('No queue has “nothing-like-it” in its name.')).toBeVisible();
  await page.getByRole('link', { name: 'Show all queues' }).click();
  await expect.poll(() => names(page)).toHaveLength(4);
});

test('more come as they are scrolled to', async ({ server, dashboard, page }) => {
  for (let at = 0; at < 230; at++) await server.create(`queue-${String(at).padStart(3, '0')}`);
  await dashboard.open('/queues');
  await expect(page.getByTestId('total')).toHaveText('230 queues');
  const box = page.getByRole('region', { name: 'Queues and their numbers' });
  await expect(async () => {
    await box.evaluate((one) => one.scrollTo(0, one.scrollHeight));
    await expect(row(page, 'queue-229')).toBeVisible({ timeout: 1_000 });
  }).toPass();
  await expect(page).toHaveURL(/rows=300/);
  await expect(page.getByRole('table')).toHaveAttribute('aria-rowcount', '231');
});

test('columns are chosen, and stay chosen', async ({ server, dashboard, page }) => {
  await shop(server);
  await dashboard.open('/queues');
  await expect(page.getByRole('columnheader', { name: 'Wait p50' })).toHaveCount(0);
  await page.getByText('Columns', { exact: true }).first().click();
  await page.getByRole('checkbox', { name: 'Wait p50' }).check();
  await page.getByRole('checkbox', { name: 'Depth' }).uncheck();
  await page.reload();
  await expect(page.getByRole('columnheader', { name: 'Wait p50' })).toBeVisible();
  await expect(page.getByRole('columnheader', { name: 'Depth' })).toHaveCount(0);
});

test('p pauses and resumes the row that the keyboard is at', async ({ server, dashboard, page }) => {
  await shop(server);
  await dashboard.open('/queues');
  await expect(row(page, 'orders')).toBeVisible();
  for (let at = 0; at < 3; at++) await page.keyboard.press('j');
  await expect(row(page, 'orders')).toBeFocused();
  await page.keyboard.press('p');
  await expect(row(page, 'orders')).toContainText('paused');
  expect((await server.get('/v1/queues/orders')).paused).toBe(true);
  await page.keyboard.press('p');
  await expect(row(page, 'orders')).toContainText('active');
  expect((await server.get('/v1/queues/orders')).paused).toBe(false);
  await row(page, 'mail').getByRole('button', { name: 'Pause mail' }).click();
  await expect(row(page, 'mail')).toContainText('paused');
  await row(page, 'orders').focus();
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/queues\/orders$/);
});

test('p acts on the row that was chosen, whatever comes above it', async ({ server, dashboard, page }) => {
  await shop(server);
  await dashboard.open('/queues');
  await row(page, 'orders').hover();
  await page.keyboard.press('j');
  await expect(row(page, 'archive')).toBeFocused();
  await page.keyboard.press('j');
  await expect(row(page, 'mail')).toBeFocused();
  await page.getByRole('heading', { level: 1 }).hover();
  await server.create('another');
  await expect(page.getByTestId('total')).toHaveText('5 queues');
  await page.keyboard.press('p');
  await expect(page.getByText('mail is paused: nothing of it is handed out.')).toBeVisible();
  await expect(row(page, 'mail')).toContainText('paused');
  // Where nothing has the focus any more, everything is in its place, and the keys know which row was the last.
  await expect(row(page, 'another')).toHaveCount(0);
  await row(page, 'mail').blur();
  await expect.poll(() => names(page)).toEqual(['another', 'archive', 'mail', 'orders', 'payments']);
  await page.keyboard.press('j');
  await expect(row(page, 'orders')).toBeFocused();
  const { rows } = await server.get('/v1/stats');
  expect(rows.filter((one: { paused: boolean }) => one.paused).map((one: { queue: string }) => one.queue)).toEqual(['mail']);
});

test('where no row has the focus, no key acts on one', async ({ server, dashboard, page }) => {
  await shop(server);
  const asked: string[] = [];
  page.on('request', (request) => {
    if (request.method() === 'POST') asked.push(request.url());
  });
  await dashboard.open('/queues');
  await expect(row(page, 'archive')).toBeVisible();
  await page.keyboard.press('j');
  await expect(row(page, 'archive')).toBeFocused();

  // Another filter has another row in the same place.
  await page.keyboard.press('/');
  await page.keyboard.type('ma');
  await expect.poll(() => names(page)).toEqual(['mail']);
  await page.getByRole('searchbox').blur();
  for (const key of ['p', 'x', 'o']) await page.keyboard.press(key);
  await expect(page.getByRole('checkbox', { name: 'Mark mail' })).not.toBeChecked();

  // A row is chosen by a click in it as well, until something else is.
  await page.getByRole('checkbox', { name: 'Mark mail' }).check();
  await page.getByTestId('total').click();
  await page.keyboard.press('p');
  await page.keyboard.press('j');
  await expect(row(page, 'mail')).toBeFocused();
  expect(asked).toEqual([]);
  await page.keyboard.press('p');
  await expect(row(page, 'mail')).toContainText('paused');
  expect(asked).toHaveLength(1);
});

test('several are paused, and resumed, together', async ({ server, dashboard, page }) => {
  await shop(server);
  await dashboard.open('/queues');
  await page.getByRole('checkbox', { name: 'Mark mail' }).check();
  await page.getByRole('checkbox', { name: 'Mark orders' }).check();
  const bar = page.getByRole('group', { name: '2 marked' });
  await bar.getByRole('button', { name: 'Pause' }).click();
  await expect(page.getByText('2 queues are paused.')).toBeVisible();
  await expect(row(page, 'orders')).toContainText('paused');
  await bar.getByRole('button', { name: 'Resume' }).click();
  await expect(page.getByText('2 queues go on.')).toBeVisible();
  await expect(row(page, 'mail')).toContainText('active');
  // What is not in the list any more is not acted on.
  await page.getByRole('searchbox').fill('a');
  await expect.poll(() => names(page)).toEqual(['archive', 'mail', 'payments']);
  await expect(page.getByRole('group', { name: 'marked' })).toHaveCount(0);
  await page.getByRole('checkbox', { name: 'Mark mail' }).check();
  const one = page.getByRole('group', { name: '1 marked' });
  await one.getByRole('button', { name: 'Mark none' }).click();
  await expect(one).toHaveCount(0);
});

test('a purge says exactly how many, and wants the name', async ({ server, dashboard, page }) => {
  await shop(server);
  await dashboard.open('/queues');
  await page.getByRole('checkbox', { name: 'Mark mail' }).check();
  await expect(page.getByRole('link', { name: 'Redrive dead…' })).toHaveAttribute('href', /\/dead\?queue=mail&redrive=/);
  await page.getByRole('button', { name: 'Purge…' }).click();
  const { matched } = await server.post('/v1/queues/mail/purge', { dry_run: true });
  expect(matched).toBe(8);
  await expect(page.getByTestId('confirm-count')).toHaveText('8');
  await expect(page.getByTestId('confirm-filter')).toHaveText('mail');
  const purge = question(page).getByRole('button', { name: 'Purge', exact: true });
  await expect(purge).toBeDisabled();
  await question(page).getByLabel('Type mail to go on').fill('mai');
  await expect(purge).toBeDisabled();
  // One more comes meanwhile: what was typed was typed for another number.
  await server.enqueue('mail');
  await question(page).getByLabel('Type mail to go on').fill('mail');
  await purge.click();
  await expect(question(page).getByRole('alert')).toContainText('It was 8 when it was shown, and is 9 now.');
  await expect(page.getByTestId('confirm-count')).toHaveText('9');
  await expect(purge).toBeDisabled();
  expect((await server.get('/v1/operations')).operations).toEqual([]);
  await question(page).getByLabel('Type mail to go on').fill('mail');
  await purge.click();
  await expect(page.getByText('The purge of mail has begun.')).toBeVisible();
  await expect(page.getByRole('link', { name: 'Follow it' })).toHaveAttribute('href', /\/operations\/.+/);
  await expect.poll(async () => (await server.get('/v1/queues/mail/stats')).states).toMatchObject({ ready: 0, dead: 0 });
});

test('a queue is deleted only with its name', async ({ server, dashboard, page }) => {
  await shop(server);
  await dashboard.open('/queues');
  await page.getByRole('checkbox', { name: 'Mark payments' }).check();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await expect(page.getByTestId('confirm-count')).toHaveText('13');
  await server.enqueue('payments');
  await question(page).getByLabel('Type payments to go on').fill('payments');
  await question(page).getByRole('button', { name: 'Delete', exact: true }).click();
  await expect(question(page).getByRole('alert')).toContainText('It was 13 when it was shown, and is 14 now.');
  expect((await server.get('/v1/queues/payments/stats')).states.ready).toBe(13);
  await question(page).getByLabel('Type payments to go on').fill('payments');
  await question(page).getByRole('button', { name: 'Delete', exact: true }).click();
  await expect(page.getByText('Deleted: payments.')).toBeVisible();
  await expect(row(page, 'payments')).toHaveCount(0);
  await expect(page.getByRole('group', { name: 'marked' })).toHaveCount(0);
});

test('an empty queue that is not empty any more is not deleted', async ({ server, dashboard, page }) => {
  await shop(server);
  await dashboard.open('/queues');
  await page.getByRole('checkbox', { name: 'Mark archive' }).check();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await expect(page.getByTestId('confirm-count')).toHaveText('0');
  await server.enqueue('archive');
  await question(page).getByLabel('Type archive to go on').fill('archive');
  await question(page).getByRole('button', { name: 'Delete', exact: true }).click();
  await expect(question(page).getByRole('alert')).toContainText('It was 0 when it was shown, and is 1 now.');
  expect((await server.get('/v1/queues/archive/stats')).states.ready).toBe(1);
});

test('an empty queue that is filled after the last look is not deleted either', async ({ server, dashboard, page }) => {
  dashboard.allow(/status of 409/);
  await shop(server);
  await dashboard.open('/queues');
  await page.getByRole('checkbox', { name: 'Mark archive' }).check();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await expect(page.getByTestId('confirm-count')).toHaveText('0');
  await page.route('**/v1/queues/archive*', async (route) => {
    if (route.request().method() === 'DELETE') await server.enqueue('archive');
    await route.fallback();
  });
  await question(page).getByLabel('Type archive to go on').fill('archive');
  await question(page).getByRole('button', { name: 'Delete', exact: true }).click();
  await expect(question(page).getByRole('alert')).toContainText('QUEUE_NOT_EMPTY');
  expect((await server.get('/v1/queues/archive/stats')).states.ready).toBe(1);
});

test('several are purged, and deleted, together, after one question about all of them', async ({ server, dashboard, page }) => {
  await shop(server);
  await dashboard.open('/queues');
  await page.getByRole('checkbox', { name: 'Mark mail' }).check();
  await page.getByRole('checkbox', { name: 'Mark payments' }).check();
  const bar = page.getByRole('group', { name: '2 marked' });
  await bar.getByRole('button', { name: 'Purge…' }).click();
  await expect(page.getByRole('heading', { name: 'Purge 2 queues' })).toBeVisible();
  await expect(page.getByTestId('confirm-count')).toHaveText('21');
  await expect(page.getByTestId('confirm-filter')).toHaveText('mail, payments');
  await question(page).getByLabel('Type purge 2 queues to go on').fill('purge 2 queues');
  await question(page).getByRole('button', { name: 'Purge', exact: true }).click();
  await expect(page.getByText('The purge of 2 queues has begun.')).toBeVisible();
  for (const queue of ['mail', 'payments']) await expect.poll(async () => (await server.get(`/v1/queues/${queue}/stats`)).states).toMatchObject({ ready: 0, delayed: 0, dead: 0 });
  expect((await server.get('/v1/operations')).operations).toHaveLength(2);
  expect((await server.get('/v1/queues/orders/stats')).states.ready).toBe(32);

  await server.enqueue('mail');
  await bar.getByRole('button', { name: 'Delete…' }).click();
  await expect(page.getByTestId('confirm-count')).toHaveText('1');
  await question(page).getByLabel('Type delete 2 queues to go on').fill('delete 2 queues');
  await question(page).getByRole('button', { name: 'Delete', exact: true }).click();
  await expect(page.getByText('Deleted: 2 queues.')).toBeVisible();
  await expect.poll(() => names(page)).toEqual(['archive', 'orders']);
  expect((await server.get('/v1/queues')).queues.map((one: { name: string }) => one.name)).toEqual(['archive', 'orders']);
});

test('a queue is created, and what is wrong is said where it is', async ({ server, dashboard, page }) => {
  dashboard.allow(/status of 40/);
  await shop(server);
  await dashboard.open('/queues');
  await page.getByRole('button', { name: 'Create a queue' }).click();
  const dialog = question(page);
  await dialog.getByLabel('Name').fill('no spaces here');
  await dialog.getByRole('combobox', { name: 'Attempts at most: default or own value' }).selectOption('value');
  await dialog.getByRole('textbox', { name: 'Attempts at most' }).fill('x');
  await dialog.getByRole('button', { name: 'Create a queue' }).click();
  await expect(dialog.getByText('must be a whole number')).toBeVisible();
  await dialog.getByRole('textbox', { name: 'Attempts at most' }).fill('5');
  await dialog.getByRole('button', { name: 'Create a queue' }).click();
  await expect(dialog.getByLabel('Name')).toHaveAttribute('aria-invalid', 'true');
  await expect(dialog.getByText(/is not allowed/)).toBeVisible();

  await dialog.getByLabel('Name').fill('refunds');
  await dialog.getByRole('combobox', { name: 'Lease time: default or own value' }).selectOption('value');
  await dialog.getByRole('textbox', { name: 'Lease time' }).fill('7d');
  await dialog.getByRole('button', { name: 'Create a queue' }).click();
  await expect(dialog.locator('[data-setting=lease_timeout_ms]')).toContainText('must lie between');
  await dashboard.pictures('queues-create');
  await dialog.getByRole('textbox', { name: 'Lease time' }).fill('45s');
  await dialog.getByRole('button', { name: 'Create a queue' }).click();
  await expect(page.getByText('refunds is there.')).toBeVisible();
  await expect(row(page, 'refunds')).toBeVisible();
  expect((await server.get('/v1/queues/refunds')).config).toEqual({ lease_timeout_ms: 45_000, retry: { max_attempts: 5 } });
});

test('a picture of a busy day', async ({ server, dashboard, page }) => {
  await shop(server);
  for (let at = 0; at < 6; at++) {
    await server.enqueueMany('orders', 9 + at, () => ({ body: 'x' }));
    for (const { receipt } of await server.lease('payments', { limit: 2, consumer: 'bank' })) await server.nack(receipt, 'the bank said 503');
    for (const { receipt } of await server.lease('orders', { limit: 6, consumer: 'shop' })) await server.ack(receipt);
    await sample(server);
  }
  await server.post('/v1/queues/payments/breaker/trip');
  await server.post('/v1/queues/mail/pause', {});
  await server.post('/v1/queues/orders/pause', { key: 'gold' });
  await dashboard.open('/queues');
  await expect(row(page, 'payments')).toContainText('breaker open');
  await expect(row(page, 'mail')).toContainText('paused');
  await expect(row(page, 'orders')).toContainText('1 key paused');
  await dashboard.pictures('queues');
  await fits(page);
  await dashboard.accessible('the queues at 400 %');
});

test.describe('with keys', () => {
  test.use({ wanted: { keyed: true } });
  test.beforeEach(({ dashboard }) => dashboard.allow(/status of 401/));

  test('a key that may only read sees the numbers and no buttons', async ({ server, dashboard, page }) => {
    await server.create('orders');
    await server.enqueue('orders');
    await server.create('secret');
    const token = await server.key('reader', ['read', 'orders']);
    await dashboard.open('/queues');
    await dashboard.signIn(token);
    await expect(row(page, 'orders')).toBeVisible();
    expect(await names(page)).toEqual(['orders']);
    for (const name of ['Create a queue', 'Pause', 'Purge…', 'Delete…']) await expect(page.getByRole('button', { name })).toHaveCount(0);
    await expect(page.getByRole('checkbox', { name: /Mark/ })).toHaveCount(0);
    await page.keyboard.press('j');
    await page.keyboard.press('p');
    expect((await server.get('/v1/queues/orders')).paused).toBe(false);
  });

  test('a key that manages one queue of several has the buttons of that one', async ({ server, dashboard, page }) => {
    for (const queue of ['mail', 'orders', 'payments']) await server.create(queue);
    await dashboard.open('/queues');
    await dashboard.signIn(await server.key('mail', ['read', '*'], ['manage', 'mail']));
    await page.getByRole('checkbox', { name: 'Mark all' }).check();
    await expect(page.getByRole('checkbox', { name: 'Mark orders' })).toBeChecked();
    const bar = page.getByRole('group', { name: '1 marked' });
    await bar.getByRole('button', { name: 'Pause' }).click();
    await expect(page.getByText('mail is paused')).toBeVisible();
    await bar.getByRole('button', { name: 'Purge…' }).click();
    await expect(page.getByTestId('confirm-filter')).toHaveText('mail');
    await page.keyboard.press('Escape');
    await page.getByRole('checkbox', { name: 'Mark mail' }).uncheck();
    await expect(page.getByRole('checkbox', { name: 'Mark orders' })).toBeChecked();
    await expect(page.getByRole('group', { name: 'marked' })).toHaveCount(0);
  });
});
