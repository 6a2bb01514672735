// One queue: how it was, what is set and who set it, and everything that an operator does to it.

import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import type { Json } from './server';
import { standStill } from './still';
import { type Server, expect, test } from './test';

const CONFIG = join(mkdtempSync(join(tmpdir(), 'redrive-config-')), 'redrive.toml');
writeFileSync(CONFIG, 'max_attempts = 6\n');

const policy = (page: Page, setting: string) => page.locator(`tr[data-setting="${setting}"]`);
const question = (page: Page) => page.getByRole('dialog');
const setting = (page: Page, key: string) => question(page).locator(`[data-setting="${key}"]`);

async function choose(page: Page, key: string, mode: 'default' | 'nothing' | 'value', value?: string): Promise<void> {
  await setting(page, key).getByRole('combobox').first().selectOption(mode);
  if (value !== undefined) await setting(page, key).getByRole('textbox').first().fill(value);
}

async function sample(server: Server, queue: string): Promise<void> {
  const last = async () => (await server.get(`/v1/queues/${queue}/history`)).samples.at(-1)?.at;
  const before = await last();
  await server.advance(10_000);
  await expect.poll(last).not.toBe(before);
}

/** Whether everything that is not a table of its own fits a page of 320 pixels, which is 1280 at 400 %. */
async function fits(page: Page): Promise<void> {
  await page.setViewportSize({ width: 320, height: 640 });
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(320);
}

test.describe('settings', () => {
  test.use({ wanted: { flags: ['--config', CONFIG] } });

  test('each setting says where it comes from', async ({ server, dashboard, page }) => {
    await server.create('grave');
    await server.create('orders', { lease_timeout_ms: 45_000, dead_letter_to: 'grave' });
    await dashboard.open('/queues/orders');
    await expect(policy(page, 'lease_timeout_ms')).toContainText('45 s');
    await expect(policy(page, 'lease_timeout_ms')).toHaveAttribute('data-origin', 'queue');
    await expect(policy(page, 'retry.max_attempts')).toContainText('6');
    await expect(policy(page, 'retry.max_attempts')).toContainText('server configuration');
    await expect(policy(page, 'retry.multiplier')).toContainText('built in');
    await expect(policy(page, 'retry.max_attempts')).toContainText('a message may override it');
    await policy(page, 'dead_letter_to').getByRole('link', { name: 'grave' }).click();
    await expect(page).toHaveURL(/\/queues\/grave$/);
  });

  test('the next retries are drawn as the server works them out', async ({ server, dashboard, page }) => {
    await server.create('orders', { retry: { max_attempts: 4, base_delay_ms: 1_000, multiplier: 4, max_delay_ms: 10_000, jitter: 'none' } });
    await dashboard.open('/queues/orders');
    const retries = page.getByRole('table', { name: 'Each attempt' });
    await expect(retries.locator('tr[data-attempt="2"]')).toContainText('1 s');
    await expect(retries.locator('tr[data-attempt="3"]')).toContainText('4 s');
    await expect(retries.locator('tr[data-attempt="4"]')).toContainText('10 s');
    await expect(retries.locator('tr[data-attempt="4"]')).toContainText('15 s');
    await expect(page.getByTestId('fate')).toHaveText('Dead: attempt 4 was the last.');
  });

  test('what is typed is seen at once, and is in force when it is saved', async ({ server, dashboard, page }) => {
    await server.create('orders', { weights: { gold: 3 }, max_waiting: 50 });
    await dashboard.open('/queues/orders');
    await page.getByRole('button', { name: 'Edit settings…' }).click();
    await expect(question(page).getByRole('button', { name: 'Save' })).toBeDisabled();
    await expect(setting(page, 'lease_timeout_ms').getByRole('combobox')).toContainText('follow the default: 30 s');
    await choose(page, 'retry.max_attempts', 'value', '3');
    await expect(question(page).getByTestId('fate')).toHaveText('Dead: attempt 3 was the last.');
    await choose(page, 'retry.max_attempts', 'nothing');
    await expect(question(page).getByTestId('fate')).toHaveText('It goes on, without a cap.');
    await choose(page, 'retry.base_delay_ms', 'value', '2s');
    await expect(question(page).locator('tr[data-attempt="3"]')).toContainText('4 s');
    await choose(page, 'max_waiting', 'default');
    await choose(page, 'lease_timeout_ms', 'value');
    await choose(page, 'breaker', 'value');
    await dashboard.pictures('queue-edit');
    await question(page).getByRole('button', { name: 'Save' }).click();
    await expect(page.getByText('The settings are in force.')).toBeVisible();
    const { config } = await server.get('/v1/queues/orders');
    expect(config).toMatchObject({ lease_timeout_ms: 30_000, retry: { max_attempts: null, base_delay_ms: 2_000 }, weights: { gold: 3 } });
    expect(config.breaker.min_messages).toBe(4);
    expect(Object.keys(config)).not.toContain('max_waiting');
    await expect(policy(page, 'retry.max_attempts')).toContainText('no limit');
    await expect(policy(page, 'lease_timeout_ms')).toContainText('set on the queue');
    await expect(page.getByTestId('breaker')).toContainText('closed');
  });

  test('what the server refuses is said at its field', async ({ server, dashboard, page }) => {
    dashboard.allow(/status of 400/);
    await server.create('orders');
    await dashboard.open('/queues/orders');
    await page.getByRole('button', { name: 'Edit settings…' }).click();
    await choose(page, 'retry.multiplier', 'value', '0.5');
    await expect(setting(page, 'retry.multiplier')).toContainText('must lie between 1 and 1000');
    await choose(page, 'retry.multiplier', 'default');
    await choose(page, 'lease_timeout_ms', 'value', '30');
    await expect(setting(page, 'lease_timeout_ms')).toContainText('must be a span of time with its unit');
    await choose(page, 'lease_timeout_ms', 'value', '2d');
    await question(page).getByRole('button', { name: 'Save' }).click();
    await expect(setting(page, 'lease_timeout_ms').getByRole('textbox')).toHaveAttribute('aria-invalid', 'true');
    await expect(setting(page, 'lease_timeout_ms')).toContainText('must lie between');
    await page.keyboard.press('Escape');
    await expect(question(page).getByText('What you typed is not saved.')).toBeVisible();
    await question(page).getByRole('button', { name: 'Go on typing' }).click();
    await expect(setting(page, 'lease_timeout_ms').getByRole('textbox')).toHaveValue('2d');
    await page.keyboard.press('Escape');
    await question(page).getByRole('button', { name: 'Close without saving' }).click();
    await expect(question(page)).toHaveCount(0);
    expect((await server.get('/v1/queues/orders')).config).toEqual({});
  });

  test('who saves after somebody else looks again, and loses nothing', async ({ server, dashboard, page }) => {
    dashboard.allow(/status of 412/);
    await server.create('orders');
    await dashboard.open('/queues/orders');
    await page.getByRole('button', { name: 'Edit settings…' }).click();
    await choose(page, 'lease_timeout_ms', 'value', '50s');
    await server.call('PUT', '/v1/queues/orders', { config: { lease_timeout_ms: 60_000, max_waiting: 9 } });
    await question(page).getByRole('button', { name: 'Save' }).click();
    await expect(question(page).getByText('Somebody changed it meanwhile: look again.')).toBeVisible();
    await expect(question(page).getByTestId('changed')).toHaveText(['Lease time is now 1 min', 'Waiting messages at most is now 9']);
    await expect(setting(page, 'lease_timeout_ms').getByRole('textbox')).toHaveValue('50s');
    await expect(setting(page, 'max_waiting').getByRole('textbox')).toHaveValue('9');
    expect((await server.get('/v1/queues/orders')).config.lease_timeout_ms).toBe(60_000);
    await question(page).getByRole('button', { name: 'Save' }).click();
    await expect(page.getByText('The settings are in force.')).toBeVisible();
    expect((await server.get('/v1/queues/orders')).config).toEqual({ lease_timeout_ms: 50_000, max_waiting: 9 });
  });

  test('weights of fairness keys are added, changed and removed', async ({ server, dashboard, page }) => {
    dashboard.allow(/status of 412/);
    await server.create('orders', { lease_timeout_ms: 45_000, weights: { gold: 3, '<b>\u202e': 2 } });
    await dashboard.open('/queues/orders');
    await expect(page.getByText('<b>⟨U+202E⟩')).toBeVisible();
    await page.getByRole('button', { name: 'Edit weights…' }).click();
    await question(page).getByLabel('Fairness key').fill('silver');
    await question(page).getByLabel('Weight', { exact: true }).fill('2');
    await question(page).getByRole('button', { name: 'Add' }).click();
    await question(page).getByLabel('Weight of gold').fill('0');
    await expect(question(page).getByText('must be a whole number, 1 at least')).toBeVisible();
    await expect(question(page).getByRole('button', { name: 'Save' })).toBeDisabled();
    await question(page).getByLabel('Weight of gold').fill('7');
    await question(page).getByRole('button', { name: 'Remove <b>⟨U+202E⟩' }).click();
    await server.call('PUT', '/v1/queues/orders/weights', { gold: 4, bronze: 1, '<b>\u202e': 2 });
    await question(page).getByRole('button', { name: 'Save' }).click();
    await expect(question(page).getByText('Set by somebody else meanwhile: bronze, gold.')).toBeVisible();
    await question(page).getByRole('button', { name: 'Save' }).click();
    await expect(page.getByText('The settings are in force.')).toBeVisible();
    expect((await server.get('/v1/queues/orders')).config).toEqual({ lease_timeout_ms: 45_000, weights: { bronze: 1, gold: 7, silver: 2 } });
  });
});

test('a pause lasts as long as was said, and can be ended', async ({ server, dashboard, page }) => {
  await server.enqueue('orders');
  await standStill(page);
  await dashboard.open('/queues/orders');
  const state = page.getByTestId('state');
  await expect(state).toHaveText('active');
  await page.keyboard.press('p');
  await question(page).getByLabel('for 10 minutes').check();
  await question(page).getByRole('button', { name: 'Pause' }).click();
  await expect(state).toContainText('paused');
  await expect(state).toContainText('ends in 10:00');
  expect(await server.lease('orders')).toEqual([]);
  await page.getByRole('button', { name: 'Resume', exact: true }).click();
  await expect(state).toHaveText('active');

  await page.clock.resume();
  await page.getByRole('button', { name: 'Pause…' }).click();
  await dashboard.accessible('the pause dialog');
  await question(page).getByLabel('until a time').check();
  const end = new Date(Date.parse((await server.get('/v1/time')).now) + 7_200_000).toISOString().slice(0, 19);
  await question(page).getByLabel('Time (of this machine)').fill(end);
  await question(page).getByRole('button', { name: 'Pause' }).click();
  await expect(state).toContainText('paused');
  expect((await server.get('/v1/queues/orders')).pauses[0].until.slice(0, 19)).toBe(end);

  await page.getByRole('button', { name: 'Pause…' }).click();
  await question(page).getByRole('button', { name: 'Pause' }).click();
  await expect(state).toContainText('until it is resumed');
  await page.keyboard.press('p');
  await expect(state).toHaveText('active');
});

test('one fairness key is paused, and resumed', async ({ server, dashboard, page }) => {
  await server.enqueue('orders', { body: 'x', fairness_key: 'gold' });
  await dashboard.open('/queues/orders');
  await page.getByRole('button', { name: 'Pause…' }).click();
  await question(page).getByLabel('one fairness key').check();
  await question(page).getByRole('textbox', { name: 'Fairness key' }).fill('gold');
  await question(page).getByLabel('for 1 hour').check();
  await question(page).getByRole('button', { name: 'Pause' }).click();
  await expect(page.getByTestId('paused-key')).toContainText('key gold paused');
  await expect(page.getByTestId('state')).toHaveText('active');
  await page.getByRole('button', { name: 'Resume key gold' }).click();
  await expect(page.getByTestId('paused-key')).toHaveCount(0);
});

test('the breaker counts down to its probe, and is opened and closed by hand', async ({ server, dashboard, page }) => {
  await server.create('orders', { breaker: { open_for_ms: 60_000 } });
  await server.enqueue('orders');
  await dashboard.open('/queues/orders');
  const breaker = page.getByTestId('breaker');
  await expect(breaker).toContainText('closed');
  await breaker.getByRole('button', { name: 'Open it…' }).click();
  await question(page).getByRole('button', { name: 'Open it', exact: true }).click();
  await expect(page.getByText('The breaker is open.')).toBeVisible();
  await expect(breaker).toContainText(/open · probe in \d+ s/);
  await breaker.getByRole('button', { name: 'Close it…' }).click();
  await question(page).getByRole('button', { name: 'Close it', exact: true }).click();
  await expect(breaker).toContainText('closed');
});

test('a purge and a deletion want the name', async ({ server, dashboard, page }) => {
  await server.enqueueMany('orders', 12, () => ({ body: 'x' }));
  await dashboard.open('/queues/orders');
  await page.getByRole('button', { name: 'Purge…' }).click();
  await expect(page.getByTestId('confirm-count')).toHaveText('12');
  await question(page).getByLabel('Type orders to go on').fill('orders');
  await question(page).getByRole('button', { name: 'Purge', exact: true }).click();
  await expect(page.locator('[data-tile=ready] strong')).toHaveText('0');
  await page.getByRole('button', { name: 'Delete…' }).click();
  await expect(page.getByTestId('confirm-count')).toHaveText('0');
  await question(page).getByLabel('Type orders to go on').fill('orders');
  await question(page).getByRole('button', { name: 'Delete', exact: true }).click();
  await expect(page).toHaveURL(/\/queues$/);
  expect((await server.get('/v1/queues')).queues).toEqual([]);
});

test('its past is drawn, its consumers are named, and its numbers lead to lists', async ({ server, dashboard, page }) => {
  await server.create('orders', { retry: { max_attempts: 5, base_delay_ms: 1_000, max_delay_ms: 30_000 }, breaker: {}, weights: { gold: 5, silver: 2 } });
  for (let at = 0; at < 10; at++) {
    await server.enqueueMany('orders', 8 + 2 * at, (n) => ({ body: `order ${n}`, fairness_key: n % 3 ? 'gold' : 'silver' }));
    const leased = await server.lease('orders', { limit: 9, consumer: 'shop-1' });
    await server.advance(250 + 90 * at);
    for (const { receipt } of leased.slice(0, 8)) await server.ack(receipt);
    for (const { receipt } of leased.slice(8)) await server.nack(receipt, 'the bank said 503');
    await sample(server, 'orders');
  }
  await server.die('orders', 'no such order');
  await server.lease('orders', { limit: 4, consumer: 'shop-2 \u202e<script>' });
  await dashboard.open('/queues/orders');
  await expect(page.getByRole('heading', { name: 'Messages by state' })).toBeVisible();
  await expect(page.getByRole('heading', { name: 'Wait until leased' })).toBeVisible();
  await expect(page.getByRole('cell', { name: 'shop-2 ⟨U+202E⟩<script>' })).toBeVisible();
  await expect(page.getByRole('row', { name: /^shop-2/ }).getByRole('link', { name: '4' })).toHaveAttribute('href', /\/leases\?queue=orders&consumer=/);
  await expect(page.locator('[data-tile=dead]')).toHaveAttribute('href', '/dead?queue=orders');
  await expect(page.locator('[data-tile=ready]')).toHaveAttribute('href', '/messages?queue=orders&state=ready');
  await expect(page.getByRole('link', { name: 'All messages' })).toHaveAttribute('href', '/messages?queue=orders');
  await dashboard.pictures('queue');
  // What is drawn is what the server has, sample by sample.
  const { samples } = await server.get('/v1/queues/orders/history');
  expect(samples.length).toBeGreaterThanOrEqual(10);
  const ready = samples.map((one: Json) => one.states.ready);
  const spark = page.locator('[data-tile=ready] svg[role=img]');
  await expect(spark).toHaveAttribute('aria-label', `the last 15 minutes: from ${ready[0]} to ${ready.at(-1)}, ${Math.max(...ready)} at most`);
  const points = ((await spark.locator('polyline').getAttribute('points')) ?? '').split(' ').map((point) => point.split(',').map(Number));
  expect(points).toHaveLength(ready.length);
  // From 23 for nothing up to 1 for the most.
  for (const [at, value] of ready.entries()) expect(points[at]?.[1]).toBeCloseTo(23 - (value / Math.max(...ready)) * 22, 1);
  const depth = page.getByRole('figure', { name: 'Messages by state' });
  await depth.getByRole('button', { name: 'As a table' }).click();
  const rows = depth.locator('tbody tr');
  await expect(rows).toHaveCount(samples.length);
  for (const at of [0, samples.length - 1]) {
    const { states } = samples[at];
    await expect(rows.nth(at).locator('td.number')).toHaveText([states.ready, states.leased, states.delayed, states.dead].map(String));
  }
  await page.getByRole('table', { name: 'Each setting' }).scrollIntoViewIfNeeded();
  await page.evaluate(() => document.querySelector('#policy')?.scrollIntoView());
  await dashboard.pictures('queue-policy');
  await fits(page);
  await dashboard.accessible('a queue at 400 %');
});

test('a queue that is not there says so', async ({ dashboard, page }) => {
  dashboard.allow(/status of 404/);
  await dashboard.open('/queues/nothing');
  await expect(page.getByText('There is no such queue, or your key may not see it.')).toBeVisible();
  await page.getByRole('link', { name: 'All queues' }).click();
  await expect(page).toHaveURL(/\/queues$/);
});

test.describe('with keys', () => {
  test.use({ wanted: { keyed: true } });
  test.beforeEach(({ dashboard }) => dashboard.allow(/status of 401/));

  test('a key that may only read sees everything and no buttons', async ({ server, dashboard, page }) => {
    await server.create('orders', { breaker: {} });
    await server.post('/v1/queues/orders/pause', { key: 'gold' });
    const token = await server.key('reader', ['read', '*']);
    await dashboard.open('/queues/orders');
    await dashboard.signIn(token);
    await expect(page.getByTestId('paused-key')).toContainText('key gold paused');
    await expect(page.getByTestId('breaker')).toContainText('closed');
    await expect(page.getByTestId('fate')).toBeVisible();
    for (const name of [/Pause/, /Resume/, /Edit/, /Purge/, /Delete/, /Open it/, /Close it/]) {
      await expect(page.locator('main').getByRole('button', { name })).toHaveCount(0);
    }
    await page.keyboard.press('p');
    await expect(page.getByRole('dialog')).toHaveCount(0);
  });
});
