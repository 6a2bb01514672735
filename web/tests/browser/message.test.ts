// One message: where it stands and why, what happened to it, and what can be done.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Page } from '@playwright/test';
import type { Json, Server } from './server';
import { standStill } from './still';
import { expect, test } from './test';

const NO_JITTER = { retry: { base_delay_ms: 60_000, multiplier: 2, max_delay_ms: 3_600_000, jitter: 'none', max_attempts: 5 } };
const look = (server: Server, id: string, queue = 'orders'): Promise<Json> => server.get(`/v1/queues/${queue}/messages/${id}`);
const open = (dashboard: { open: (path?: string) => Promise<void> }, id: string, queue = 'orders') => dashboard.open(`/queues/${queue}/messages/${id}`);
const now = (page: Page) => page.getByTestId('now');
const fact = (page: Page, name: string) => page.locator('dl.facts dt', { hasText: new RegExp(`^${name}$`) }).locator('xpath=following-sibling::dd[1]');

/** A message that failed twice, and waits for its third attempt. */
async function failedTwice(server: Server): Promise<string> {
  await server.create('orders', NO_JITTER);
  const id = await server.enqueue('orders', {
    body: '{"total":12345678901234567890.10}', content_type: 'application/json', type: 'order.created', source: 'shop', fairness_key: 'tenant-7',
    headers: { 'x-trace': 'abc', 'x-html': '<b>bold</b>' }, dedup_key: 'order-1', ttl_ms: 7_200_000, priority: 7,
  });
  const [first] = await server.lease('orders', { consumer: 'worker-1' });
  await server.advance(1_500);
  await server.nack(first.receipt, 'connect to 10.0.0.1:5432: timed out');
  await server.advance(60_000);
  const [second] = await server.lease('orders', { consumer: 'worker-2' });
  await server.advance(250);
  await server.nack(second.receipt, 'Error: boom\n    at handler (worker.js:10)\n    at run (worker.js:99)', { delay_ms: 600_000 });
  return id;
}

test('the header, the timeline with the rule of each delay, and the body as it was written', async ({ server, dashboard, page }) => {
  const id = await failedTwice(server);
  await open(dashboard, id);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(`Message …${id.slice(-8)}`);
  await expect(page.locator('header [data-state="delayed"]').first()).toBeVisible();
  await expect(fact(page, 'Id')).toContainText(id);
  await expect(fact(page, 'Type').getByRole('link')).toHaveAttribute('href', '/messages?queue=orders&type=order.created');
  await expect(fact(page, 'Fairness key').getByRole('link')).toHaveText('tenant-7');
  await expect(fact(page, 'Priority')).toHaveText('7');
  await expect(fact(page, 'Attempts')).toHaveText('2 of 5');
  await expect(fact(page, 'Deliveries')).toHaveText('2');
  await expect(fact(page, 'Dedup key')).toHaveText('order-1');
  await expect(fact(page, 'Expires in')).toContainText('1:');

  const attempts = page.locator('li.attempt');
  await expect(attempts).toHaveCount(2);
  await expect(attempts.first()).toContainText('Attempt 1 · failed');
  await expect(attempts.first()).toContainText('worker-1');
  await expect(attempts.first()).toContainText('took 1.5 s');
  await expect(attempts.first()).toContainText('connect to 10.0.0.1:5432: timed out');
  await expect(attempts.first()).toContainText('Then it waits for 1 min: the backoff of the retry policy says so.');
  await expect(attempts.last()).toContainText('took 250 ms');
  await expect(page.getByRole('region', { name: 'Error of attempt 2' })).toContainText('at run (worker.js:99)');
  await expect(attempts.last()).toContainText('Then it waits for 10 min: the consumer asked for at least this much');
  await expect(now(page)).toContainText('delayed');
  await expect(page.getByTestId('eta')).toContainText(/It can run at the earliest in (10:00|9:\d\d)/);
  await expect(page.getByText('Its time has not come.')).toBeVisible();
  // Numbers are not read, so none is rounded.
  await expect(page.getByRole('region', { name: 'Body' })).toHaveText('{"total":12345678901234567890.10}');
  await expect(page.getByRole('row', { name: 'x-html <b>bold</b>' })).toBeVisible();
  await dashboard.pictures('message');
});

test('why it does not run is told for each reason, and counts down on the clock of the server', async ({ server, dashboard, page }) => {
  await server.create('orders', { ...NO_JITTER, lease_timeout_ms: 600_000 });
  const first = await server.enqueue('orders', { body: 'x' });
  const second = await server.enqueue('orders', { body: 'x' });
  await server.post('/v1/queues/orders/pause', { for_ms: 3_600_000 });
  await open(dashboard, first);
  await expect(page.getByTestId('eta')).toContainText(/at the earliest in (1:00:00|59:\d\d)/);
  await open(dashboard, second);
  await expect(page.getByText('The queue is paused.')).toBeVisible();
  await expect(page.getByText(/ends in (1:00:00|59:\d\d)/)).toBeVisible();
  await expect(page.getByText('Messages of its key in front of it: 1')).toBeVisible();
  await expect(page.getByTestId('eta')).toContainText('When it can run is not known');
  await dashboard.pictures('message-why');
  await server.post('/v1/queues/orders/resume');
  await expect(page.getByText('The queue is paused.')).toHaveCount(0);
  const [leased] = await server.lease('orders', { consumer: 'w' });
  expect(leased.id).toBe(first);
  await expect(page.getByTestId('eta')).toHaveText('Nothing keeps it: the next consumer that asks gets it.');
  await server.lease('orders', { consumer: 'worker-9' });
  await expect(page.getByTestId('eta')).toHaveText('It is running: a consumer has it.');
  await expect(now(page)).toContainText(/leased\s+by worker-9 · \d+:\d\d left/);
});

test('a delayed message counts down, and is ready when its time has come', async ({ server, dashboard, page }) => {
  await server.create('orders');
  const id = await server.enqueue('orders', { body: 'x', delay_ms: 20_000 });
  // The page stands still from then on, until the test lets time pass.
  await standStill(page);
  await open(dashboard, id);
  await expect(page.getByTestId('eta')).toHaveText('It can run at the earliest in 20 s');
  // A tick comes just behind a full second of the server.
  await page.clock.runFor(2_000);
  await expect(page.getByTestId('eta')).toHaveText(/^It can run at the earliest in 1[89] s$/);
  await page.clock.runFor(10_000);
  await expect(page.getByTestId('eta')).toHaveText(/^It can run at the earliest in [89] s$/);
  await server.advance(20_000);
  await page.clock.runFor(9_000);
  await expect(page.getByTestId('eta')).toHaveText('Nothing keeps it: the next consumer that asks gets it.');
  await expect(now(page)).toContainText('ready');
});

for (const [how, retry] of [
  ['button', (page: Page) => page.getByRole('button', { name: 'Retry now' }).click()],
  ['key', (page: Page) => page.keyboard.press('r')],
] as const) {
  test(`retry now: a delayed message is ready, by ${how}`, async ({ server, dashboard, page }) => {
    const id = await failedTwice(server);
    await open(dashboard, id);
    await expect(page.getByRole('button', { name: 'Retry now' })).toBeVisible();
    await retry(page);
    await expect(page.getByText('It is ready.')).toBeVisible();
    await expect.poll(async () => (await look(server, id)).state).toBe('ready');
    await expect(now(page)).toContainText('ready');
    await expect(page.getByRole('button', { name: 'Retry now' })).toHaveCount(0);
  });
}

for (const state of ['ready', 'delayed', 'dead'] as const) {
  test(`discard: a message that is ${state} is gone, after a question`, async ({ server, dashboard, page }) => {
    await server.create('orders');
    const id = state === 'dead' ? await server.die('orders', 'boom') : await server.enqueue('orders', { body: 'x', ...(state === 'delayed' ? { delay_ms: 60_000 } : {}) });
    const other = await server.enqueue('orders', { body: 'stays' });
    await open(dashboard, id);
    await page.getByRole('button', { name: 'Discard…' }).click();
    await expect(page.getByText('It is gone for good, with its body and its history.')).toBeVisible();
    await expect(page.getByTestId('confirm-count')).toHaveText('1');
    await expect(page.getByTestId('confirm-filter')).toHaveText(`id:${id}`);
    await page.getByRole('button', { name: 'Cancel' }).click();
    await expect(page.getByRole('dialog')).toHaveCount(0);
    expect((await look(server, id)).state).toBe(state);
    await page.keyboard.press('d');
    await page.getByRole('button', { name: 'Discard', exact: true }).click();
    await expect(page.getByText('It was discarded.')).toBeVisible();
    await expect(page.getByText('This message is not in the queue any more.')).toBeVisible();
    expect((await server.get('/v1/queues/orders/messages')).messages.map((one: Json) => one.id)).toEqual([other]);
  });
}

test('retry now: a dead message is redriven with a reason, which stands in its history', async ({ server, dashboard, page }) => {
  await server.create('orders');
  const id = await server.die('orders', 'card declined', { body: 'x' });
  await open(dashboard, id);
  await expect(now(page)).toContainText('dead because its consumer buried it');
  await expect(page.getByTestId('eta')).toHaveText('It does not run again by itself.');
  await expect(page.locator('li.attempt')).toContainText('buried by its consumer');
  await expect(page.locator('li.attempt')).toContainText('Then it is dead.');
  await dashboard.pictures('message-dead');
  await page.keyboard.press('r');
  await page.getByRole('textbox', { name: /^Why/ }).fill('card was replaced');
  await dashboard.accessible('a redrive');
  await page.getByRole('button', { name: 'Redrive', exact: true }).click();
  await expect(page.getByText('It is brought back.')).toBeVisible();
  const operation = await page.getByRole('link', { name: 'See how far it is' }).getAttribute('href');
  await expect(now(page)).toContainText('ready');
  await expect(page.getByText(/Retry requested by.*card was replaced/)).toBeVisible();
  await expect(page.locator('li.redriven')).toContainText('Brought back from the dead');
  await expect(fact(page, 'Redrives')).toHaveText('1');
  await dashboard.open(operation ?? '');
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Redrive of orders');
});

test('a leased message: extend, release, and discard by force', async ({ server, dashboard, page }) => {
  await server.create('orders', { lease_timeout_ms: 60_000 });
  const id = await server.enqueue('orders', { body: 'x' });
  await server.lease('orders', { consumer: 'worker-1' });
  await open(dashboard, id);
  await expect(now(page)).toContainText('by worker-1');
  await expect(page.getByRole('button', { name: 'Move…' })).toHaveCount(0);
  await expect(page.getByRole('button', { name: 'Reschedule…' })).toHaveCount(0);
  await page.getByRole('button', { name: 'Extend the lease…' }).click();
  const span = page.getByLabel('For how long from now');
  await span.fill('never');
  await expect(page.getByRole('button', { name: 'Extend', exact: true })).toBeDisabled();
  await span.fill('2h');
  await page.getByRole('button', { name: 'Extend', exact: true }).click();
  await expect(page.getByText('The lease was extended.')).toBeVisible();
  await expect(now(page)).toContainText(/(2:00:00|1:59:\d\d) left/);
  await dashboard.pictures('message-leased');

  await page.getByRole('button', { name: 'Retry now' }).click();
  await expect(page.getByText('is fenced: it cannot settle it any more')).toBeVisible();
  await page.getByRole('button', { name: 'Release', exact: true }).click();
  await expect(page.getByText('It was taken from its consumer.')).toBeVisible();
  await expect(now(page)).toContainText('ready');
  expect((await look(server, id)).attempts).toBe(0);

  await server.lease('orders', { consumer: 'worker-2' });
  await expect(now(page)).toContainText('by worker-2');
  await page.keyboard.press('d');
  await expect(page.getByText('A consumer has it. It is gone for good all the same, and the consumer is fenced')).toBeVisible();
  await expect(page.getByTestId('confirm-filter')).toHaveText(`id:${id}`);
  await page.getByRole('button', { name: 'Discard', exact: true }).click();
  await expect(page.getByText('It was discarded.')).toBeVisible();
  await expect(page.getByText('This message is not in the queue any more.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Discard…' })).toHaveCount(0);
  expect((await server.get('/v1/queues/orders/stats')).states.leased).toBe(0);
});

test('reschedule: after a time, at a time, another priority', async ({ server, dashboard, page }) => {
  await server.create('orders');
  const id = await server.enqueue('orders', { body: 'x' });
  await open(dashboard, id);
  await page.getByRole('button', { name: 'Reschedule…' }).click();
  await expect(page.getByRole('button', { name: 'Reschedule', exact: true })).toBeDisabled();
  await page.getByLabel('How long').fill('1h30m');
  await dashboard.accessible('rescheduling');
  await page.getByRole('button', { name: 'Reschedule', exact: true }).click();
  await expect(page.getByText('It was rescheduled.')).toBeVisible();
  await expect(now(page)).toContainText(/delayed\s+for (1:30:00|1:29:\d\d)/);

  await page.getByRole('button', { name: 'Reschedule…' }).click();
  await page.getByLabel('At a time').check();
  await page.getByLabel(/^Time/).fill('2099-12-31T23:59:58');
  await page.getByLabel('Priority').selectOption('9');
  await page.getByRole('button', { name: 'Reschedule', exact: true }).click();
  await expect.poll(async () => (await look(server, id)).visible_at).toBe('2099-12-31T23:59:58.000Z');
  await expect(fact(page, 'Priority')).toHaveText('9');

  await page.getByRole('button', { name: 'Reschedule…' }).click();
  await page.getByLabel('Leave its time as it is').check();
  await expect(page.getByRole('button', { name: 'Reschedule', exact: true })).toBeDisabled();
  await page.getByLabel('Priority').selectOption('0');
  await page.getByRole('button', { name: 'Reschedule', exact: true }).click();
  await expect.poll(async () => (await look(server, id)).priority).toBe(0);
});

test('move: it is in the other queue, and a link leads there', async ({ server, dashboard, page }) => {
  await server.create('orders');
  await server.create('archive');
  const id = await server.enqueue('orders', { body: 'x' });
  await open(dashboard, id);
  await page.getByRole('button', { name: 'Move…' }).click();
  await page.getByRole('combobox', { name: 'To which queue' }).fill('arch');
  await page.getByRole('option', { name: /archive/ }).click();
  await page.getByRole('button', { name: 'Move', exact: true }).click();
  await expect(page.getByText('It was moved to archive.')).toBeVisible();
  const there = await page.getByRole('link', { name: 'See it there' }).getAttribute('href');
  await expect(page.getByText('This message is not in the queue any more.')).toBeVisible();
  await dashboard.open(there ?? '');
  await expect(page).toHaveURL(new RegExp(`/queues/archive/messages/${id}$`));
  await expect(fact(page, 'Came from')).toHaveText('orders');
});

test('a message that is acked while somebody looks says so, and what was seen of it stays', async ({ server, dashboard, page }) => {
  await server.create('orders');
  const id = await server.enqueue('orders', { body: 'the body of it' });
  await open(dashboard, id);
  await expect(page.getByText('the body of it')).toBeVisible();
  // It may go between two questions.
  dashboard.allow(/status of 404/);
  const [leased] = await server.lease('orders');
  await server.ack(leased.receipt);
  await expect(page.getByText('This message is not in the queue any more.')).toBeVisible();
  await expect(page.getByText('It was acked, which is how most messages end, or discarded')).toBeVisible();
  await expect(page.getByText('Below is what was last seen of it.')).toBeVisible();
  await expect(page.getByText('the body of it')).toBeVisible();
  await expect(page.getByRole('link', { name: 'Messages of orders' })).toHaveAttribute('href', '/messages?queue=orders');
  await dashboard.pictures('message-gone');
});

test('a message that never was says the same', async ({ server, dashboard, page }) => {
  await server.create('orders');
  dashboard.allow(/status of 404/);
  await open(dashboard, '0198c1de-0000-7000-8000-000000000001');
  await expect(page.getByText('This message is not in the queue any more.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Retry now' })).toHaveCount(0);
});

test('hostile bodies, headers and errors are text', async ({ server, dashboard, page }) => {
  await server.create('orders');
  const body = `<script>alert(document.cookie)</script>\u202etxt.exe\u0000${'long '.repeat(10)}\n<img src=x onerror=alert(1)>`;
  const id = await server.die('orders', '<script>alert(1)</script>\n\u202eback', { body, headers: { 'x-evil': '<svg onload=alert(1)>' }, type: '<i>t</i>', dedup_key: '"><script>' });
  await open(dashboard, id);
  const region = page.getByRole('region', { name: 'Body' });
  await expect(region).toContainText('<script>alert(document.cookie)</script>⟨U+202E⟩txt.exe⟨U+0000⟩long');
  await expect(region).toContainText('<img src=x onerror=alert(1)>');
  await expect(page.getByRole('row', { name: 'x-evil <svg onload=alert(1)>' })).toBeVisible();
  await expect(page.getByRole('region', { name: 'Error of attempt 1' })).toContainText('<script>alert(1)</script>');
  await expect(page.locator('main img, main script, main svg[onload]')).toHaveCount(0);
  await dashboard.pictures('message-hostile');
});

test('a line of a mebibyte does not freeze the page', async ({ server, dashboard, page }) => {
  await server.create('orders');
  const id = await server.enqueue('orders', { body: 'x'.repeat(1 << 20) });
  await open(dashboard, id);
  await expect(page.getByRole('button', { name: 'Show more (1,028,576 characters left)' })).toBeVisible();
  await page.getByRole('button', { name: /Show more/ }).click();
  await expect(page.getByRole('button', { name: 'Show more (1,008,576 characters left)' })).toBeVisible();
  expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBe(0);
});

test('bytes that are no text are shown as numbers, and saved as they are', async ({ server, dashboard, page }) => {
  await server.create('orders');
  const bytes = Buffer.concat([Buffer.from([0xff, 0xfe, 0x00]), Buffer.from('<b>PNG</b>'), Buffer.alloc(5_000, 0x80)]);
  const id = await server.enqueue('orders', { body_base64: bytes.toString('base64') });
  await open(dashboard, id);
  await expect(page.getByText('These bytes are no UTF-8 text. The first 4.0 KiB as numbers:')).toBeVisible();
  const region = page.getByRole('region', { name: 'Body' });
  await expect(region).toContainText('00000000  ff fe 00 3c 62 3e 50 4e 47 3c 2f 62 3e 80 80 80  ...<b>PNG</b>...');
  await expect(region).toContainText('00000ff0');
  await expect(region).not.toContainText('00001000');
  await dashboard.pictures('message-bytes');
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download' }).click()]);
  expect(download.suggestedFilename()).toBe(`${id}.body`);
  expect(readFileSync(await download.path()).equals(bytes)).toBe(true);
});

test('a checkpoint is shown', async ({ server, dashboard, page }) => {
  await server.create('orders');
  const id = await server.enqueue('orders', { body: 'x' });
  const [leased] = await server.lease('orders');
  await server.post('/v1/leases/extend', { receipt: leased.receipt, checkpoint_base64: Buffer.from('page 7 of 9').toString('base64') });
  await open(dashboard, id);
  await expect(page.getByRole('region', { name: 'Checkpoint' })).toHaveText('page 7 of 9');
});

test.describe('with keys', () => {
  test.use({ wanted: { keyed: true } });
  test.beforeEach(({ dashboard }) => dashboard.allow(/status of 401/));

  test('who may only read sees everything and can do nothing', async ({ server, dashboard, page }) => {
    const id = await failedTwice(server);
    const token = await server.key('reader', ['read', '*']);
    await open(dashboard, id);
    await dashboard.signIn(token);
    await expect(page.getByRole('region', { name: 'Body' })).toContainText('12345678901234567890.10');
    await expect(page.getByRole('heading', { name: 'Why is it not running?' })).toBeVisible();
    for (const name of ['Retry now', 'Reschedule…', 'Move…', 'Discard…', 'Extend the lease…']) await expect(page.getByRole('button', { name })).toHaveCount(0);
    await page.keyboard.press('d');
    await expect(page.getByRole('dialog')).toHaveCount(0);
    await dashboard.pictures('message-read-only');
  });

  test('commands do what they say, in a shell, and never have the key in them', async ({ server, dashboard, page }) => {
    await server.create('orders');
    const body = `it's "quoted" $(touch /tmp/never) \`id\` \\ 漢\nsecond line`;
    const id = await server.die('orders', 'boom', { body, type: "o'rder", headers: { 'x-a': "'; id; '" } });
    await open(dashboard, id);
    await dashboard.signIn(server.token ?? '');
    const copied = async (command: string, how: string): Promise<string> => {
      const button = page.locator(`tr[data-command="${command}"]`).getByRole('button', { name: how });
      const text = await dashboard.copied(() => button.click());
      expect(text).not.toContain(server.token ?? 'no token');
      return text;
    };
    const bin = dirname(resolve(process.env.REDRIVE_BIN ?? '../target/debug/redrive'));
    const run = (command: string) => {
      const env = { ...process.env, PATH: `${bin}:${process.env.PATH}`, REDRIVE_TOKEN: server.token ?? '' };
      const { status, stdout, stderr } = spawnSync('sh', ['-c', command], { encoding: 'utf8', env });
      expect(status, `${command}\n${stderr}`).toBe(0);
      return stdout;
    };
    expect(JSON.parse(run(await copied('show', 'curl'))).body).toBe(body);
    expect(run(await copied('show', 'CLI'))).toContain(id);
    expect(JSON.parse(run(await copied('why', 'curl'))).state).toBe('dead');
    expect(run(await copied('why', 'CLI'))).toContain('dead');
    run(await copied('enqueue', 'curl'));
    run(await copied('enqueue', 'CLI'));
    const again = (await server.get('/v1/queues/orders/messages?state=ready')).messages;
    expect(again.map((one: Json) => [one.body, one.type, one.headers])).toEqual([[body, "o'rder", { 'x-a': "'; id; '" }], [body, "o'rder", { 'x-a': "'; id; '" }]]);
    run(await copied('retry', 'CLI'));
    await expect.poll(async () => (await look(server, id)).state).toBe('ready');
  });
});
