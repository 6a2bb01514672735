// Leases: the countdown on the server's clock, what happens after it, and what an operator may do.

import type { Page, Response } from '@playwright/test';
import { standStill } from './still';
import { tasksOf } from './tasks';
import { type Server, expect, test } from './test';

/** The time of this machine at which the page begins; the server has its own. */
const NOW = Date.now();

/** Lets the server stand at a full second, at which the countdowns of the page change. */
async function fullSecond(server: Server): Promise<void> {
  await server.advance(1_000 - ((await server.get('/v1/time')).now_ms % 1_000));
}

/** Lets the same time pass for the server and for the page. */
async function pass(server: Server, page: Page, ms: number): Promise<void> {
  await server.advance(ms);
  await page.clock.runFor(ms);
}

/** Opens the leases with a clock that stands still until the test lets time pass. */
async function openStill(dashboard: { open: (path?: string) => Promise<void> }, page: Page, path = '/leases', time = NOW): Promise<void> {
  await standStill(page, time);
  await dashboard.open(path);
  await expect(page.locator('.clock')).toContainText(':');
  // Just behind the full second.
  await page.clock.runFor(10);
}

/** Lets time pass for the page, a second at a time, until something is so: what the server tells arrives in between. */
async function until(page: Page, so: () => Promise<void>): Promise<void> {
  await expect(async () => {
    await page.clock.runFor(1_000);
    await so();
  }).toPass();
}

const rowOf = (page: Page, id: string) => page.locator('tr.item', { has: page.locator(`a[title="${id}"]`) });
const soon = { timeout: 2_000 };

async function leased(server: Server, queue: string, consumer: string, more: object = {}, message: object = { body: 'hello' }): Promise<{ id: string; receipt: string }> {
  await server.enqueue(queue, message);
  const [got] = await server.lease(queue, { consumer, ...more });
  return got;
}

test('a lease counts down from 30 s to Overdue, stays so while the sweeper is held, and says that it was requeued', async ({ dashboard, page, server }) => {
  await fullSecond(server);
  await server.create('orders', { lease_timeout_ms: 30_000, retry: { max_attempts: 3 } });
  await server.holdSweeper(true);
  const { id } = await leased(server, 'orders', 'worker-1');
  await openStill(dashboard, page);
  const row = rowOf(page, id);
  await expect(row.locator('time')).toHaveText('30 s');
  await expect(row).toContainText('worker-1');
  await expect(row).toContainText('1 of 3');
  await expect(row.locator('[data-band]')).toHaveAttribute('data-band', 'fine');

  await pass(server, page, 1_000);
  await expect(row.locator('time')).toHaveText('29 s');
  await pass(server, page, 22_000);
  await expect(row.locator('time')).toHaveText('7 s');
  await expect(row.locator('[data-band]')).toHaveAttribute('data-band', 'quarter');
  await expect(row).toContainText('less than a quarter of the lease');
  await pass(server, page, 5_000);
  await expect(row.locator('time')).toHaveText('2 s');
  await expect(row.locator('[data-band]')).toHaveAttribute('data-band', 'tenth');
  await expect(row).not.toContainText('Overdue');

  await pass(server, page, 2_000);
  const badge = row.locator('[data-state="overdue"]');
  await expect(badge).toHaveText('Overdue');
  await expect(badge.locator('svg')).toBeVisible();
  await expect(badge).toHaveCSS('color', 'rgb(179, 0, 27)');
  await expect(page.getByTestId('lease-counts')).toContainText('1 overdue');

  // The page only watches: nobody but the broker moves the message, and it has not.
  await pass(server, page, 5_000);
  await expect(badge).toHaveText('Overdue');
  expect((await server.get(`/v1/queues/orders/messages/${id}`)).state).toBe('leased');

  await server.holdSweeper(false);
  await until(page, () => expect(row).toContainText('requeued', soon));
  await expect(row).toContainText('ready again, attempt 2 of 3');
  expect((await server.get(`/v1/queues/orders/messages/${id}`)).state).toBe('ready');
  await page.clock.runFor(11_000);
  await expect(row).toHaveCount(0);
  await expect(page.getByText('No message is leased.')).toBeVisible();
});

test('a lease that was the last attempt says that the message died, and of what', async ({ dashboard, page, server }) => {
  await fullSecond(server);
  await server.create('poison', { lease_timeout_ms: 30_000, retry: { max_attempts: 1 } });
  await server.holdSweeper(true);
  const { id } = await leased(server, 'poison', 'worker-1');
  await openStill(dashboard, page);
  const row = rowOf(page, id);
  await pass(server, page, 31_000);
  await expect(row).toContainText('Overdue');
  await server.holdSweeper(false);
  await until(page, () => expect(row.locator('[data-fate]')).toHaveText('dead', soon));
  await expect(row.getByTestId('fate')).toContainText('max_attempts');
  await row.getByRole('link', { name: 'max_attempts' }).click();
  await expect(page).toHaveURL(/\/dead\?queue=poison$/);
});

test('where dead letters go to another queue, a lease that died leads there', async ({ dashboard, page, server }) => {
  await fullSecond(server);
  await server.create('grave');
  await server.create('poison', { lease_timeout_ms: 30_000, retry: { max_attempts: 1 }, dead_letter_to: 'grave' });
  const { id, receipt } = await leased(server, 'poison', 'worker-1');
  const acked = await leased(server, 'poison', 'worker-2');
  await openStill(dashboard, page);
  await expect(page.getByTestId('lease-counts')).toContainText('2 leases');
  await server.nack(receipt, 'no route to host');
  await server.ack(acked.receipt);
  const row = rowOf(page, id);
  await until(page, () => expect(row.locator('[data-fate]')).toHaveText('dead', soon));
  await expect(rowOf(page, acked.id).locator('[data-fate]')).toHaveText('gone');
  await row.getByRole('link', { name: 'grave' }).click();
  await expect(page).toHaveURL(new RegExp(`/queues/grave/messages/${id}$`));
});

for (const [way, off] of [['ahead', 3_600_000], ['behind', -3_600_000]] as const) {
  test(`a machine whose clock is an hour ${way} shows the same countdown`, async ({ dashboard, page, server }) => {
    await fullSecond(server);
    await server.create('orders', { lease_timeout_ms: 30_000 });
    const { id } = await leased(server, 'orders', 'worker-1');
    await openStill(dashboard, page, '/leases', NOW + off);
    const time = rowOf(page, id).locator('time');
    await expect(time).toHaveText('30 s');
    await pass(server, page, 10_000);
    await expect(time).toHaveText('20 s');
    await page.keyboard.press('g');
    await page.keyboard.press(',');
    await expect(page.getByTestId('skew')).toHaveText(new RegExp(`^is (1 h|1 h 1 min|5\\d min|5\\d min \\d+ s) ${way}( of)? it$`));
  });
}

test('a lease that was acked, failed or is with somebody else says so', async ({ dashboard, page, server }) => {
  await fullSecond(server);
  await server.create('orders', { lease_timeout_ms: 30_000, retry: { max_attempts: 5, base_delay_ms: 60_000, max_delay_ms: 60_000, jitter: 'none' } });
  const acked = await leased(server, 'orders', 'worker-1');
  const failed = await leased(server, 'orders', 'worker-2');
  await openStill(dashboard, page);
  await expect(page.getByTestId('lease-counts')).toContainText('2 leases');
  await server.ack(acked.receipt);
  await server.nack(failed.receipt, 'no route to host');
  await until(page, () => expect(rowOf(page, acked.id)).toContainText('acked, discarded or moved', soon));
  await expect(rowOf(page, acked.id).locator('[data-fate]')).toHaveText('gone');
  await expect(rowOf(page, failed.id)).toContainText('delayed, attempt 2 of 5 in');
  await expect(rowOf(page, failed.id).getByTestId('fate')).toContainText(/in [56]\d s$/);

  const again = await leased(server, 'orders', 'worker-1');
  const gone = rowOf(page, again.id).filter({ has: page.locator('[data-fate]') });
  await until(page, () => expect(rowOf(page, again.id).locator('[data-band]')).toBeVisible(soon));
  await server.post(`/v1/queues/orders/leases/${again.id}/release`);
  const [taken] = await server.lease('orders', { consumer: 'worker-9' });
  expect(taken.id).toBe(again.id);
  await until(page, () => expect(gone).toContainText('with worker-9, attempt 1 of 5', soon));
});

test('an operator extends and releases leases, one or those that are marked', async ({ dashboard, page, server }) => {
  await server.create('orders', { lease_timeout_ms: 30_000 });
  const all = [];
  for (let at = 0; at < 4; at++) all.push(await leased(server, 'orders', `worker-${at}`, { lease_ms: 10_000 + at * 1_000 }));
  const ids = all.map((one) => one.id) as [string, string, string, string];
  const lease = async (id: string) => (await server.get(`/v1/queues/orders/messages/${id}`)).lease;
  const left = async (id: string) => Date.parse((await lease(id)).deadline) - (await server.get('/v1/time')).now_ms;
  await dashboard.open('/leases');

  await page.getByRole('button', { name: `Extend the lease of ${ids[0]}` }).click();
  await expect(page.getByText(/The lease lasts until/)).toBeVisible();
  expect(await left(ids[0])).toBe(30_000);

  await page.getByRole('button', { name: `Release the lease of ${ids[1]}` }).click();
  const question = page.getByRole('dialog', { name: 'Release this lease?' });
  await expect(question.getByTestId('confirm-count')).toHaveText('1');
  await expect(question.getByTestId('confirm-filter')).toHaveText(`queue:orders id:${ids[1]}`);
  await question.getByRole('button', { name: 'Cancel' }).click();
  expect((await server.get(`/v1/queues/orders/messages/${ids[1]}`)).state).toBe('leased');
  await page.getByRole('button', { name: `Release the lease of ${ids[1]}` }).click();
  await question.getByRole('button', { name: 'Release' }).click();
  await expect(page.getByText('Released: 1.')).toBeVisible();
  await expect.poll(async () => (await server.get(`/v1/queues/orders/messages/${ids[1]}`)).state).toBe('ready');

  for (const id of [ids[2], ids[3]]) await rowOf(page, id).getByRole('checkbox').check();
  await expect(page.getByText('2 leases marked')).toBeVisible();
  await page.getByRole('button', { name: 'Extend…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Extend 2 leases' });
  await dialog.getByLabel('How long').fill('0');
  await expect(dialog.getByText('More than nothing')).toBeVisible();
  await expect(dialog.getByRole('button', { name: 'Extend' })).toBeDisabled();
  await dialog.getByLabel('How long').fill('2');
  await dialog.getByRole('button', { name: 'Extend' }).click();
  await expect(page.getByText('Extended: 2.')).toBeVisible();
  expect(await left(ids[2])).toBe(120_000);
  expect(await left(ids[3])).toBe(120_000);

  for (const id of [ids[2], ids[3]]) await rowOf(page, id).getByRole('checkbox').check();
  // One of them is settled before the operator is done. The browser tells of the 404, and the page takes it for what it is.
  dashboard.allow(/status of 404/);
  await server.ack(all[3]?.receipt ?? '');
  await page.getByRole('group', { name: 'What to do with the leases that are marked' }).getByRole('button', { name: 'Release' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Release' }).click();
  await expect(page.getByText(/Released: 1\./).last()).toBeVisible();
  await expect.poll(async () => (await server.get(`/v1/queues/orders/messages/${ids[2]}`)).state).toBe('ready');
});

test('what is overdue can be ended at once, with the exact count', async ({ dashboard, page, server }) => {
  await server.create('orders', { lease_timeout_ms: 30_000, retry: { max_attempts: 1 } });
  await server.create('mail', { lease_timeout_ms: 3_600_000 });
  await server.holdSweeper(true);
  for (let at = 0; at < 3; at++) await leased(server, 'orders', 'worker-1');
  await leased(server, 'mail', 'worker-1');
  for (let at = 0; at < 2; at++) await leased(server, 'orders', 'worker-2', { lease_ms: 1_800_000 });
  await server.advance(31_000);
  await dashboard.open('/leases');
  await expect(page.getByTestId('lease-counts')).toContainText('3 overdue');
  await page.getByRole('button', { name: 'End what is overdue now' }).click();
  const question = page.getByRole('dialog', { name: 'End the overdue leases now?' });
  await expect(question.getByTestId('confirm-count')).toHaveText('3');
  await expect(question.getByTestId('confirm-filter')).toHaveText('queue:orders overdue (3)');
  // Whatever has run out by then: as many are ended as were shown.
  await server.advance(1_800_000);
  await question.getByRole('button', { name: 'End them' }).click();
  await expect(page.getByText('Leases ended: 3.')).toBeVisible();
  await expect(page.getByTestId('lease-counts')).toContainText('3 leases');
  // The page hears of a clock that was moved when it asks for the time again.
  await page.reload();
  await page.getByRole('button', { name: 'End what is overdue now' }).click();
  await expect(question.getByTestId('confirm-count')).toHaveText('2');
  await question.getByRole('button', { name: 'End them' }).click();
  await expect(page.getByText('Leases ended: 2.')).toBeVisible();
  await expect(page.getByTestId('lease-counts')).toContainText('1 lease');
  await expect(page.getByRole('button', { name: 'End what is overdue now' })).toHaveCount(0);
  expect((await server.get('/v1/queues/orders/stats')).states.dead).toBe(5);
});

test('filter and order are in the address, and a reload shows the same', async ({ dashboard, page, server }) => {
  await server.create('orders');
  await server.create('mail');
  for (const [queue, consumer, lease_ms] of [['orders', 'b', 20_000], ['mail', 'a', 30_000], ['orders', 'a', 10_000]] as const) {
    await leased(server, queue, consumer, { lease_ms });
  }
  await dashboard.open('/leases');
  const column = (at: number) => page.locator('tr.item').locator(`td:nth-of-type(${at})`);
  await expect(page.locator('tr.item')).toHaveCount(3);
  await expect(column(6)).toHaveText(['a', 'b', 'a']);
  await page.getByRole('button', { name: 'Consumer' }).click();
  await expect(page).toHaveURL(/sort=consumer/);
  await expect(column(6)).toHaveText(['a', 'a', 'b']);
  await expect(page.getByRole('columnheader', { name: 'Consumer' })).toHaveAttribute('aria-sort', 'ascending');
  await page.getByRole('button', { name: 'Consumer' }).click();
  await expect(column(6)).toHaveText(['b', 'a', 'a']);
  await page.getByLabel('Queue', { exact: true }).fill('orders');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/queue=orders/);
  await expect(page.locator('tr.item')).toHaveCount(2);
  await page.reload();
  await expect(column(6)).toHaveText(['b', 'a']);
  await expect(page.getByLabel('Queue', { exact: true })).toHaveValue('orders');
  await page.locator('tr.item').getByRole('link', { name: 'a', exact: true }).click();
  await expect(page).toHaveURL(/leases\?consumer=a$/);
  await expect(page.locator('tr.item')).toHaveCount(2);
  await page.getByRole('button', { name: 'Show all' }).click();
  await expect(page.locator('tr.item')).toHaveCount(3);
  dashboard.allow(/status of 404/);
  await dashboard.open('/leases?queue=nothing-like-it');
  await expect(page.getByRole('alert')).toContainText('nothing-like-it');
});

test('the keyboard is enough', async ({ dashboard, page, server }) => {
  await server.create('orders');
  const first = await leased(server, 'orders', 'worker-1', { lease_ms: 10_000 });
  const second = await leased(server, 'orders', 'worker-1', { lease_ms: 20_000 });
  await dashboard.open('/leases');
  await expect(rowOf(page, second.id)).toBeVisible();
  await page.keyboard.press('j');
  await expect(rowOf(page, first.id)).toBeFocused();
  await page.keyboard.press('j');
  await expect(rowOf(page, second.id)).toBeFocused();
  await page.keyboard.press('x');
  await expect(page.getByText('1 lease marked')).toBeVisible();
  await page.keyboard.press('k');
  await expect(rowOf(page, first.id)).toBeFocused();
  await page.keyboard.press('X');
  await expect(page.getByText('2 leases marked')).toBeVisible();
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(new RegExp(`/queues/orders/messages/${first.id}$`));
});

test.describe('with keys', () => {
  test.use({ wanted: { keyed: true } });

  test('who may only read sees the countdown and no button; who manages one queue sees those of it', async ({ dashboard, page, server }) => {
    await server.create('orders', { lease_timeout_ms: 30_000 });
    await server.create('mail', { lease_timeout_ms: 30_000 });
    await server.holdSweeper(true);
    const order = await leased(server, 'orders', 'worker-1');
    const mail = await leased(server, 'mail', 'worker-1');
    await server.advance(31_000);
    await dashboard.open('/leases');
    await dashboard.signIn(await server.key('reader', ['read', '*']));
    await expect(rowOf(page, order.id)).toContainText('Overdue');
    await expect(page.getByRole('button', { name: /Extend|Release|End what/ })).toHaveCount(0);
    await expect(page.locator('tr.item').getByRole('checkbox')).toHaveCount(0);
    await page.getByRole('button', { name: 'Sign out' }).click();

    await dashboard.signIn(await server.key('mail', ['read', '*'], ['manage', 'mail']));
    await expect(rowOf(page, mail.id).getByRole('button', { name: /Extend/ })).toBeVisible();
    await expect(rowOf(page, order.id).getByRole('button')).toHaveCount(0);
    await page.getByRole('button', { name: 'End what is overdue now' }).click();
    await expect(page.getByTestId('confirm-count')).toHaveText('1');
    await expect(page.getByTestId('confirm-filter')).toHaveText('queue:mail overdue (1)');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Sign out' }).click();

    await dashboard.signIn(await server.key('only mail', ['read', 'mail']));
    await expect(rowOf(page, mail.id)).toBeVisible();
    await expect(rowOf(page, order.id)).toHaveCount(0);
  });
});

test('numbers only for who wants nothing to move, and a summary now and then for who listens', async ({ dashboard, page, server }) => {
  await fullSecond(server);
  await server.create('orders', { lease_timeout_ms: 30_000 });
  const { id } = await leased(server, 'orders', 'worker-1');
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await openStill(dashboard, page);
  await expect(rowOf(page, id).locator('time')).toHaveText('30 s');
  await expect(rowOf(page, id).locator('[data-band] svg')).toBeHidden();
  const said = page.locator('p[role="status"]');
  await expect(said).toHaveText('1 lease, 0 overdue, 0 ending within 10 seconds.');
  // Another lease is not said at once, and not every second.
  await leased(server, 'orders', 'worker-2');
  await until(page, () => expect(page.getByTestId('lease-counts')).toContainText('2 leases', soon));
  await expect(said).toHaveText('1 lease, 0 overdue, 0 ending within 10 seconds.');
  await page.clock.runFor(10_000);
  await expect(said).toHaveText(/^2 leases/);
  await page.emulateMedia({ reducedMotion: 'no-preference' });
  await expect(rowOf(page, id).locator('[data-band] svg')).toBeVisible();
});

test('ten thousand leases tick without a long task, and only those in sight are in the page', async ({ browser, dashboard, page, server }) => {
  test.setTimeout(300_000);
  await server.create('orders', { lease_timeout_ms: 3_600_000 });
  await server.enqueueMany('orders', 10_000, (at) => ({ body: `order ${at}`, type: 'order.placed' }));
  for (let batch = 0; batch < 10; batch++) {
    const got = await server.lease('orders', { limit: 1_000, consumer: `worker-${batch}`, lease_ms: 3_600_000 + batch * 60_000 });
    expect(got).toHaveLength(1_000);
  }
  await dashboard.open('/leases');
  await expect(page.getByTestId('lease-counts')).toContainText('10,000 leases');
  const first = page.locator('tr.item').first();
  const before = await first.locator('time').textContent();

  // Thirty ticks of the one clock, in which leases are extended, so that the list is read again, too.
  const tasks = await tasksOf(browser, page, async () => {
    const ticks = page.evaluate(thirtyTicks);
    for (let at = 0; at < 4; at++) {
      const id = await page.locator('tr.item a[title]').nth(at * 3 + 1).getAttribute('title');
      const { now_ms } = await server.get('/v1/time');
      const read = page.waitForResponse((response) => tells(response, id, now_ms + 3_600_000 + at));
      await server.post(`/v1/queues/orders/leases/${id}/extend`, { lease_ms: 3_600_000 + at });
      await read;
    }
    await ticks;
  });
  expect(tasks[0], 'the longest task').toBeGreaterThan(0);
  expect(tasks.filter((ms) => ms > 50), 'tasks longer than 50 ms').toEqual([]);
  expect(await first.locator('time').textContent()).not.toBe(before);
  expect(await page.locator('tr.item').count()).toBeLessThan(100);

  // More than are read are not passed over in silence.
  await server.enqueueMany('orders', 100, () => ({ body: 'one more' }));
  await server.lease('orders', { limit: 100, consumer: 'worker-last' });
  await expect(page.getByText('The list ends after 10,000 leases, and there are more.')).toBeVisible();
  await expect(page.getByTestId('lease-counts')).toContainText('at least 10,000 leases');
});

/** Whether an answer is a list of leases in which that of a message ends then: one that was asked for before does not say so. */
async function tells(response: Response, id: string | null, deadline: number): Promise<boolean> {
  if (!response.url().includes('/v1/leases?')) return false;
  // Another list that has begun gives up the one before.
  const { leases } = (await response.json().catch(() => ({ leases: [] }))) as { leases: { id: string; lease: { deadline: string } }[] };
  return leases.some((held) => held.id === id && Date.parse(held.lease.deadline) === deadline);
}

/** Lets the clock of the page change thirty times. */
function thirtyTicks(): Promise<void> {
  return new Promise((resolve) => {
    let ticks = 0;
    const clock = document.querySelector('.clock') as Element;
    const seen = new MutationObserver(() => {
      if (++ticks < 30) return;
      seen.disconnect();
      resolve();
    });
    seen.observe(clock, { subtree: true, characterData: true, childList: true });
  });
}

test('what is pictured: leases in every band', async ({ dashboard, page, server }) => {
  await fullSecond(server);
  await server.create('orders', { retry: { max_attempts: 5 } });
  await server.create('mail', { retry: { max_attempts: 3 } });
  await server.create('thumbnails', {});
  await server.holdSweeper(true);
  const plan = [
    ['orders', 'order.placed', 'checkout-7c9d-1', 20_000], ['orders', 'order.placed', 'checkout-7c9d-2', 34_000], ['orders', 'order.cancelled', 'checkout-7c9d-2', 41_000],
    ['mail', 'receipt', 'mailer-1', 24_000], ['mail', 'receipt', 'mailer-1', 95_000], ['mail', 'welcome', 'mailer-2', 120_000],
    ['thumbnails', 'image.uploaded', 'gpu-a', 300_000], ['thumbnails', 'image.uploaded', 'gpu-a', 900_000], ['thumbnails', 'image.uploaded', 'gpu-b', 26_500],
  ] as const;
  const got = [];
  for (const [queue, type, consumer, lease_ms] of plan) got.push(await leased(server, queue, consumer, { lease_ms }, { body: '{}', type }));
  await openStill(dashboard, page);
  await expect(page.locator('tr.item')).toHaveCount(plan.length);
  await pass(server, page, 25_000);
  await server.ack(got[5]?.receipt ?? '');
  await server.nack(got[4]?.receipt ?? '', 'SMTP 421: try again later', { delay_ms: 45_000, exact: true });
  await until(page, () => expect(page.locator('[data-fate]')).toHaveCount(2, soon));
  await rowOf(page, got[6]?.id ?? '').getByRole('checkbox').check();
  await page.mouse.move(0, 0);
  // Who looks for faults in the page needs time that passes.
  await page.clock.resume();
  await dashboard.pictures('leases');
});

test('an empty list says what would fill it', async ({ dashboard, page }) => {
  await dashboard.open('/leases');
  await expect(page.getByText('No message is leased.')).toBeVisible();
  await expect(page.getByText('redrive lease QUEUE')).toBeVisible();
});
