// Messages: found by a filter that is in the address, listed however many there are, and changed as an operation.

import { readFileSync } from 'node:fs';
import type { Page } from '@playwright/test';
import type { Json, Server } from './server';
import { tasksOf } from './tasks';
import { expect, test } from './test';

/** Dead messages of one error each, without waiting for time. */
async function die(server: Server, queue: string, count: number, error: (at: number) => string, message: (at: number) => object): Promise<void> {
  await server.enqueueMany(queue, count, message);
  for (let left = count; left > 0; ) {
    const leased = await server.lease(queue, { limit: Math.min(left, 100) });
    await Promise.all(leased.map((one: Json, at: number) => server.post('/v1/leases/bury', { receipt: one.receipt, error: error(at) })));
    left -= leased.length;
  }
}

/** A queue with messages in every state: 25 dead, 3 leased, 4 delayed, 40 ready. */
async function seed(server: Server): Promise<void> {
  await server.create('orders', { lease_timeout_ms: 600_000 });
  await server.create('archive');
  await die(server, 'orders', 20, (at) => `connect to 10.0.0.${at}:5432: timed out after 3000 ms`, (at) => ({ body: `{"order":${at}}`, type: 'order.created', source: 'shop', fairness_key: `tenant-${at % 3}` }));
  await server.advance(3_600_000);
  await die(server, 'orders', 5, () => 'card declined', () => ({ body: 'x', type: 'order.paid', source: 'shop', fairness_key: 'tenant-9' }));
  await server.enqueueMany('orders', 3, () => ({ body: 'x', type: 'order.shipped', fairness_key: 'tenant-1' }));
  await server.lease('orders', { limit: 3, consumer: 'worker-1' });
  await server.enqueueMany('orders', 4, (at) => ({ body: 'x', type: 'order.reminder', delay_ms: 600_000 * (at + 1) }));
  await server.enqueueMany('orders', 40, (at) => ({ body: 'x', type: 'order.created', source: at % 2 === 0 ? 'shop' : 'partner', fairness_key: `tenant-${at % 3}`, priority: 5 }));
}

const rows = (page: Page) => page.locator('tr.item');
const box = (page: Page) => page.getByRole('combobox', { name: 'Filter' });
const states = async (server: Server, queue: string) => (await server.get(`/v1/queues/${queue}/stats`)).states;

async function narrow(page: Page, line: string): Promise<void> {
  await box(page).fill(line);
  await box(page).press('Enter');
}

test('a queue is chosen by a part of its name, and every number leads to its list', async ({ server, dashboard, page }) => {
  await seed(server);
  await dashboard.open('/messages');
  const table = page.getByRole('table', { name: /Choose a queue/ });
  await expect(table.getByRole('row', { name: /orders/ }).getByRole('link', { name: '25' })).toHaveAttribute('href', '/messages?queue=orders&state=dead');
  await dashboard.pictures('messages-start');
  const picker = page.getByRole('combobox', { name: 'Queue' });
  await picker.fill('ord');
  await expect(page.getByRole('option')).toHaveText(/orders\s*40 ready, 25 dead/);
  await picker.press('ArrowDown');
  await picker.press('Enter');
  await expect(page).toHaveURL(/\/messages\?queue=orders$/);
  await expect(page.getByText('These are all: 72 messages.')).toBeVisible();
  await picker.fill('no/slash');
  await expect(page.getByText('A name has only A-Z a-z 0-9 . _ -')).toBeVisible();
  await picker.fill('zzz');
  await expect(page.getByText('No queue has that in its name.')).toBeVisible();
  await picker.press('Escape');
  await picker.blur();
  await expect(picker).toHaveValue('orders');
});

test('rows say what there is to say; facets have exact counts and narrow the list', async ({ server, dashboard, page }) => {
  await seed(server);
  await dashboard.open('/messages?queue=orders');
  await expect(page.getByText('These are all: 72 messages.')).toBeVisible();
  const facets = page.getByRole('group', { name: 'Narrow the list' });
  for (const [state, count] of [['ready', 40], ['delayed', 4], ['leased', 3], ['dead', 25], ['done', 0]] as const) {
    await expect(facets.getByRole('button', { name: new RegExp(`^${state}\\s*${count}$`) })).toBeVisible();
  }
  await expect(rows(page).first()).toContainText('dead');
  await expect(rows(page).first()).toContainText('timed out after 3000 ms');
  await expect(rows(page).first()).toContainText('1 / 3');
  await dashboard.pictures('messages');

  await facets.getByRole('button', { name: /^leased/ }).click();
  await expect(page).toHaveURL(/state=leased/);
  await expect(box(page)).toHaveValue('state:leased');
  await expect(rows(page)).toHaveCount(3);
  await expect(rows(page).first()).toContainText(/\d+:\d\d left/);
  await expect(facets.getByRole('button', { name: 'worker-1' })).toBeVisible();
  await facets.getByRole('button', { name: /^delayed/ }).click();
  await expect(box(page)).toHaveValue('state:leased,delayed');
  await expect(rows(page)).toHaveCount(7);
  await expect(rows(page).last()).toContainText(/in \d+:\d\d/);

  await page.goBack();
  await expect(rows(page)).toHaveCount(3);
  await page.getByRole('button', { name: 'Clear the filter' }).click();
  await expect(page.getByText('These are all: 72 messages.')).toBeVisible();
  await facets.getByRole('button', { name: /card declined\s*5/ }).click();
  await expect(rows(page)).toHaveCount(5);
  await expect(page).toHaveURL(/fingerprint=[0-9a-f]{16}/);
  const chip = facets.getByRole('button', { name: 'order.paid' });
  await chip.click();
  await expect(chip).toHaveAttribute('aria-pressed', 'true');
  await expect(box(page)).toHaveValue(/^type:order.paid fingerprint:/);
  await chip.click();
  await expect(box(page)).toHaveValue(/^fingerprint:/);
});

test('a filter maps to what the API is asked, is in the address, and a reload shows the same', async ({ server, dashboard, page }) => {
  await seed(server);
  await dashboard.open('/messages?queue=orders');
  for (const [line, count] of [
    ['state:dead type:order.paid', 5],
    ['state:dead source:shop key:tenant-1 reason:buried', 7],
    ['consumer:worker-1', 3],
    ['error:"timed out"', 20],
    ['attempts>=1 attempts<=5 error:"card declined"', 5],
    ['attempts>=2', 0],
    ['age>30m', 20],
    ['state:dead age<30m', 5],
    ['type:order.shipped,order.reminder', 7],
    ['state:delayed key:""', 4],
  ] as const) {
    await narrow(page, line);
    await expect(page.getByText(new RegExp(`^These are all: ${count} messages?\\.`)), line).toBeVisible();
    await page.reload();
    await expect(box(page)).toHaveValue(line);
    await expect(page.getByText(new RegExp(`^These are all: ${count} messages?\\.`)), line).toBeVisible();
  }
  await narrow(page, 'attempts>=2');
  await expect(page.getByText('No message matches the filter.')).toBeVisible();
  const { messages } = await server.get('/v1/queues/orders/messages?limit=1');
  await narrow(page, `id:${messages[0].id}`);
  await expect(rows(page)).toHaveCount(1);
});

test('the filter completes parts and values, and says what is wrong and where', async ({ server, dashboard, page }) => {
  await seed(server);
  await dashboard.open('/messages?queue=orders');
  await expect(rows(page).first()).toBeVisible();
  await page.keyboard.press('/');
  await expect(box(page)).toBeFocused();
  await page.keyboard.type('st');
  await expect(page.getByRole('option')).toHaveText(['state:']);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect(box(page)).toHaveValue('state:');
  await page.keyboard.type('de');
  await expect(page.getByRole('option')).toHaveText(['delayed', 'dead']);
  await dashboard.accessible('a filter that is being typed');
  await page.getByRole('option', { name: 'dead' }).click();
  await page.keyboard.type('type:pai');
  await expect(page.getByRole('option')).toHaveText(['order.paid']);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Enter');
  await expect(rows(page)).toHaveCount(5);
  await expect(page).toHaveURL(/queue=orders&state=dead&type=order\.paid$/);

  await narrow(page, 'state:dead gone:x timeout');
  await expect(page.getByText('At character 12: there is no part “gone”.')).toBeVisible();
  await expect(page.getByText('At character 19: “timeout” says nothing of what it is. Bodies cannot be searched')).toBeVisible();
  await expect(box(page)).toHaveAttribute('aria-invalid', 'true');
  await dashboard.pictures('messages-wrong');
  // What is wrong is not applied.
  await expect(rows(page)).toHaveCount(5);
  await expect(page.getByText('There is no search in bodies')).toBeVisible();

  await dashboard.open('/messages?queue=orders&state=gone&age_min=5');
  await expect(page.getByText('At character 7: “gone” is neither a state')).toBeVisible();
  await expect(page.getByText('At character 16: “5” is no span of time')).toBeVisible();
  await expect(page.getByText('The filter cannot be read: see above.')).toBeVisible();
  // What could be read of it means more than what was said: nothing is done with that.
  await expect(page.getByRole('button', { name: /Select all/ })).toHaveCount(0);
  await expect(page.getByRole('button', { name: 'Export NDJSON' })).toHaveCount(0);
  await dashboard.accessible('an address that is wrong');
});

test('a queue that is not there is an error that says so', async ({ dashboard, page }) => {
  dashboard.allow(/status of 404/);
  await dashboard.open('/messages?queue=nothing');
  await expect(page.getByRole('alert')).toHaveCount(1);
  await expect(page.getByRole('alert')).toContainText('QUEUE_NOT_FOUND');
});

test('hostile text is text, in rows, facets and addresses', async ({ server, dashboard, page }) => {
  await server.create('evil');
  const nasty = '<img src=x onerror=alert(1)>\u202egpj';
  await die(server, 'evil', 1, () => `<script>alert(1)</script>\u202e ${'x'.repeat(2_000)}`, () => ({ body: '<script>', type: nasty.replace('\u202e', ''), fairness_key: '"; drop, table' }));
  await dashboard.open('/messages?queue=evil');
  await expect(rows(page).first()).toContainText('<script>alert(1)</script>⟨U+202E⟩');
  await expect(rows(page).first()).toContainText('<img src=x onerror=alert(1)>gpj');
  await page.getByRole('group', { name: 'Narrow the list' }).getByRole('button', { name: '<img src=x' }).click();
  await expect(box(page)).toHaveValue('type:"<img src=x onerror=alert(1)>gpj"');
  await expect(rows(page)).toHaveCount(1);
  await page.reload();
  await expect(box(page)).toHaveValue('type:"<img src=x onerror=alert(1)>gpj"');
  await expect(rows(page)).toHaveCount(1);
});

test('marked messages are redriven as an operation, with the exact number and filter', async ({ server, dashboard, page }) => {
  await seed(server);
  await dashboard.open('/messages?queue=orders&state=dead');
  await expect(rows(page).first()).toBeVisible();
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  await expect(page.getByText('1 message chosen')).toBeVisible();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('Shift+X');
  await expect(page.getByText('3 messages chosen')).toBeVisible();
  await expect(rows(page).nth(1)).toHaveAttribute('aria-selected', 'true');
  await dashboard.pictures('messages-chosen');
  const ids = await Promise.all([0, 1, 2].map((at) => rows(page).nth(at).getAttribute('data-key')));
  await page.keyboard.press('r');
  await page.getByLabel('Why').fill('the database is back');
  await page.getByRole('button', { name: 'Go on' }).click();
  await expect(page.getByTestId('confirm-count')).toHaveText('3');
  await expect(page.getByTestId('confirm-filter')).toHaveText(`state:dead id:${[...ids].sort().join(',')}`);
  await page.getByRole('button', { name: 'Redrive', exact: true }).click();
  await expect(page.getByText('Redriving 3 messages.')).toBeVisible();
  await page.getByRole('link', { name: 'See how far it is' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Redrive of orders');
  await expect(page.getByTestId('applied')).toHaveText('3');
  await expect.poll(async () => (await states(server, 'orders')).dead).toBe(22);
  const message = await server.get(`/v1/queues/orders/messages/${ids[0]}`);
  expect(message.note).toContain('the database is back');
});

test('all that match are chosen by one key, however many are loaded', async ({ server, dashboard, page }) => {
  await server.create('orders');
  await server.enqueueMany('orders', 1_500, (at) => ({ body: 'x', type: at % 3 === 0 ? 'a' : 'b' }));
  await dashboard.open('/messages?queue=orders&type=a');
  await expect(rows(page).first()).toBeVisible();
  await page.keyboard.press('a');
  await expect(page.getByText('All 500 that match are chosen')).toBeVisible();
  await page.getByRole('button', { name: 'Discard…' }).click();
  await page.getByLabel('How many a second at most').fill('100000');
  await page.getByRole('button', { name: 'Go on' }).click();
  await expect(page.getByTestId('confirm-count')).toHaveText('500');
  await expect(page.getByTestId('confirm-filter')).toHaveText('type:a');
  await expect(page.getByText('What is discarded is gone.')).toBeVisible();
  await dashboard.pictures('messages-confirm');
  // One more comes while somebody reads: that is another question.
  await server.enqueue('orders', { body: 'x', type: 'a' });
  await page.getByRole('button', { name: 'Discard', exact: true }).click();
  await expect(page.getByRole('dialog').getByRole('alert')).toContainText('It was 500 when it was shown, and is 501 now. Nothing was done');
  await expect(page.getByTestId('confirm-count')).toHaveText('501');
  expect((await server.get('/v1/operations')).operations).toEqual([]);
  await page.getByRole('button', { name: 'Discard', exact: true }).click();
  await expect(page.getByText('Discarding 501 messages.')).toBeVisible();
  await expect.poll(async () => (await states(server, 'orders')).ready).toBe(1_000);
  await expect(page.getByText('No message matches the filter.').or(page.getByRole('button', { name: /gone: show/ }))).toBeVisible();
  await page.getByRole('combobox', { name: 'Filter' }).hover();
  await expect(page.getByText('No message matches the filter.')).toBeVisible();
});

test('leased messages go only by force, and messages move to a queue', async ({ server, dashboard, page }) => {
  await seed(server);
  await dashboard.open('/messages?queue=orders&state=leased');
  await expect(rows(page)).toHaveCount(3);
  await page.getByRole('button', { name: 'Select all 3 matching' }).click();
  await expect(page.getByText('All 3 that match are chosen')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Redrive…' })).toHaveCount(0);
  await page.keyboard.press('d');
  await page.getByRole('button', { name: 'Go on' }).click();
  await expect(page.getByTestId('confirm-count')).toHaveText('0');
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.keyboard.press('d');
  await page.getByLabel('Leased ones, too').check();
  await page.getByRole('button', { name: 'Go on' }).click();
  await expect(page.getByTestId('confirm-count')).toHaveText('3');
  await expect(page.getByText('their consumers are fenced')).toBeVisible();
  await page.getByRole('button', { name: 'Discard', exact: true }).click();
  await expect.poll(async () => (await states(server, 'orders')).leased).toBe(0);

  await narrow(page, 'state:delayed');
  await expect(rows(page)).toHaveCount(4);
  await page.getByRole('checkbox', { name: 'Mark all that are loaded' }).check();
  await expect(page.getByText('4 messages chosen')).toBeVisible();
  await page.getByRole('button', { name: 'Move…' }).click();
  const target = page.getByRole('combobox', { name: 'To which queue' });
  await target.fill('arch');
  await page.getByRole('option', { name: /archive/ }).click();
  await expect(target).toHaveValue('archive');
  await dashboard.accessible('where to');
  await page.getByRole('button', { name: 'Go on' }).click();
  await expect(page.getByRole('heading', { name: 'Move messages from orders to archive?' })).toBeVisible();
  await expect(page.getByTestId('confirm-count')).toHaveText('4');
  await page.getByRole('button', { name: 'Move', exact: true }).click();
  await expect(page.getByText('Moving 4 messages.')).toBeVisible();
  await expect.poll(async () => (await states(server, 'archive')).delayed).toBe(4);
});

test('more than the API can name one by one are chosen by their filter', async ({ server, dashboard, page }) => {
  await server.create('orders');
  await server.enqueueMany('orders', 150, () => ({ body: 'x' }));
  await dashboard.open('/messages?queue=orders');
  await expect(page.getByText('These are all: 150 messages.')).toBeVisible();
  await page.getByRole('checkbox', { name: 'Mark all that are loaded' }).check();
  await expect(page.getByText('150 messages chosen')).toBeVisible();
  await expect(page.getByText('More than 100 cannot be named one by one')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Discard…' })).toHaveCount(0);
  await page.getByRole('button', { name: 'Select all 150 matching' }).click();
  await expect(page.getByText('All 150 that match are chosen')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Discard…' })).toBeEnabled();
  await page.getByRole('button', { name: 'Choose none' }).click();
  await expect(page.getByRole('button', { name: 'Discard…' })).toHaveCount(0);
});

test('what matches is exported, a line for each', async ({ server, dashboard, page }) => {
  await seed(server);
  await dashboard.open('/messages?queue=orders&state=dead&type=order.paid');
  await expect(rows(page)).toHaveCount(5);
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export NDJSON' }).click()]);
  expect(download.suggestedFilename()).toBe('orders.ndjson');
  const lines = readFileSync(await download.path(), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
  expect(lines).toHaveLength(5);
  expect(new Set(lines.map((line) => line.type))).toEqual(new Set(['order.paid']));
  await expect(page.getByText('5 messages exported.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Export NDJSON' })).toHaveAttribute('title', /64 MiB at most/);
});

test('the list is live, and rows do not jump under the pointer', async ({ server, dashboard, page }) => {
  await server.create('orders', { lease_timeout_ms: 600_000 });
  await server.enqueueMany('orders', 3, () => ({ body: 'x', type: 'old' }));
  await dashboard.open('/messages?queue=orders&newest_first=true');
  await expect(page.getByLabel('Newest first')).toBeChecked();
  await expect(rows(page)).toHaveCount(3);
  const first = await rows(page).first().getAttribute('data-key');
  await rows(page).first().hover();
  const id = await server.enqueue('orders', { body: 'x', type: 'new' });
  await expect(page.getByRole('button', { name: '1 newer, 0 gone: show' })).toBeVisible();
  expect(await rows(page).first().getAttribute('data-key')).toBe(first);
  await page.getByRole('button', { name: '1 newer' }).click();
  await expect(rows(page).first()).toHaveAttribute('data-key', id);
  // What changes about a row is shown where it is.
  await box(page).hover();
  const [leased] = await server.lease('orders', { consumer: 'w' });
  await expect(page.locator(`tr[data-key="${leased.id}"]`)).toContainText('leased');
  await server.ack(leased.receipt);
  await expect(page.locator(`tr[data-key="${leased.id}"]`)).toHaveCount(0);
  await expect(page.getByRole('group', { name: 'Narrow the list' }).getByRole('button', { name: /^ready\s*3$/ })).toBeVisible();
});

test('rows open with Enter and with a click, and back leads to the same list', async ({ server, dashboard, page }) => {
  await seed(server);
  await dashboard.open('/messages?queue=orders&state=dead&type=order.paid');
  await expect(rows(page)).toHaveCount(5);
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  const id = await rows(page).nth(1).getAttribute('data-key');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(new RegExp(`/queues/orders/messages/${id}$`));
  await page.goBack();
  await expect(rows(page)).toHaveCount(5);
  await rows(page).first().getByText('card declined').click();
  await expect(page).toHaveURL(/\/queues\/orders\/messages\//);
});

test.describe('with a key that may only read', () => {
  test.use({ wanted: { keyed: true } });

  test('there is a list, and no button that would fail', async ({ server, dashboard, page }) => {
    dashboard.allow(/status of 401/);
    await seed(server);
    const token = await server.key('reader', ['read', '*']);
    await dashboard.open('/messages?queue=orders&state=dead');
    await dashboard.signIn(token);
    await expect(rows(page).first()).toBeVisible();
    await expect(page.getByRole('button', { name: 'Export NDJSON' })).toBeVisible();
    await expect(page.getByRole('button', { name: /Select all/ })).toHaveCount(0);
    await expect(page.getByRole('checkbox', { name: /Mark/ })).toHaveCount(0);
    await page.keyboard.press('a');
    await page.keyboard.press('j');
    await page.keyboard.press('x');
    await expect(page.getByText(/chosen/)).toHaveCount(0);
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export NDJSON' }).click()]);
    expect(readFileSync(await download.path(), 'utf8').trim().split('\n')).toHaveLength(25);
    await dashboard.pictures('messages-read-only');
  });
});

test.describe('four times as large', () => {
  test.use({ viewport: { width: 320, height: 700 } });

  test('everything wraps, and nothing is cut', async ({ server, dashboard, page }) => {
    await seed(server);
    const { id } = await server.post('/v1/queues/orders/messages/move', { filter: { states: ['ready'] }, queue: 'archive', rate: 1 });
    const { messages } = await server.get('/v1/queues/orders/messages?limit=1');
    for (const path of ['/messages?queue=orders', `/queues/orders/messages/${messages[0].id}`, '/operations', `/operations/${id}`]) {
      await dashboard.open(path);
      await expect(page.locator('[data-state]:not(.live)').first()).toBeVisible();
      expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), path).toBe(0);
      await dashboard.accessible(path);
    }
  });
});

test('100,000 messages do not freeze the page', async ({ browser, server, dashboard, page }) => {
  test.setTimeout(300_000);
  await server.create('orders');
  await server.enqueueMany('orders', 100_000, (at) => ({ body: 'x', type: at % 1_000 === 0 ? 'rare' : 'order', fairness_key: `tenant-${at % 10}` }));
  await dashboard.open('/messages?queue=orders');
  await expect(page.getByRole('button', { name: 'Select all 100,000 matching' })).toBeVisible();
  await expect(rows(page).first()).toBeVisible();
  const list = page.getByRole('region', { name: 'Messages of orders' });
  const foot = page.getByTestId('loaded');
  const toEnd = () => list.evaluate((element) => element.scrollTo(0, element.scrollHeight));

  // From here on: what loads the page is allowed to take its time.
  const tasks = await tasksOf(browser, page, async () => {
    await list.hover();
    // Whoever comes to the end of what is there is given more.
    for (let wanted = 400; wanted <= 2_000; wanted += 200) {
      await toEnd();
      await expect(foot).toHaveText(`${wanted.toLocaleString('en')} loaded; more come when you scroll.`);
      expect(await rows(page).count()).toBeLessThan(200);
    }
    await list.evaluate((element) => element.scrollTo(0, 0));
    await narrow(page, 'type:rare key:tenant-0');
    await expect(page.getByText('These are all: 100 messages.')).toBeVisible();
    expect(await rows(page).count()).toBeLessThan(200);
    // What is nowhere is not searched for ever: it rests, says so, and goes on when it is asked to.
    await narrow(page, 'error:"nowhere"');
    const rests = page.getByText('Many messages were looked at, and 0 found so far.');
    await expect(rests).toBeVisible();
    for (; await rests.isVisible(); await expect(foot).not.toContainText('Searching')) await page.getByRole('button', { name: 'Search on' }).click();
    await expect(page.getByText('No message matches the filter.')).toBeVisible();
    await narrow(page, 'state:ready');
    await expect(foot).toHaveText('200 loaded; more come when you scroll.');
    // And on to as many as are kept; then it says so.
    for (let before = await foot.textContent(); !/is the limit/.test(before ?? ''); before = await foot.textContent()) {
      await toEnd();
      await expect(foot).not.toHaveText(before ?? '');
      await expect(foot).not.toContainText('Searching');
    }
    await expect(foot).toContainText('20,000 messages are shown');
    expect(await rows(page).count()).toBeLessThan(200);
  });
  expect(tasks[0], 'tasks were measured').toBeGreaterThan(1);
  expect(tasks[0], `the longest tasks: ${tasks.slice(0, 5).join(', ')} ms`).toBeLessThan(200);
});
