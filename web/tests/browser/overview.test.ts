// The overview: how things stand, what needs somebody, and how to begin.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Page } from '@playwright/test';
import { type Server, expect, test } from './test';

const BINARY = resolve(process.env.REDRIVE_BIN ?? '../target/debug/redrive');

const tile = (page: Page, state: string) => page.locator(`[data-tile=${state}]`);
const attention = (page: Page, kind: string) => page.locator(`li[data-kind=${kind}]`);

/** Lets the server take samples, one after another. */
async function sample(server: Server, times: number, between: (at: number) => Promise<void> = async () => undefined): Promise<void> {
  for (let at = 0; at < times; at++) {
    await between(at);
    const before = (await server.get('/v1/overview')).samples.at(-1)?.at;
    await server.advance(10_000);
    await expect.poll(async () => (await server.get('/v1/overview')).samples.at(-1)?.at !== before).toBe(true);
  }
}

/** Whether everything that is not a table of its own fits a page of 320 pixels, which is 1280 at 400 %. */
async function fits(page: Page): Promise<void> {
  await page.setViewportSize({ width: 320, height: 640 });
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(320);
}

/** A shell in which `redrive` is the binary under test. */
function shell(command: string, path: string) {
  return spawn('sh', ['-c', command], { env: { ...process.env, PATH: `${path}:${process.env.PATH}` }, stdio: 'ignore' });
}

test('where nothing has happened yet, the commands that the page shows light it up', async ({ server, dashboard, page }) => {
  const path = mkdtempSync(join(tmpdir(), 'redrive-path-'));
  symlinkSync(BINARY, join(path, 'redrive'));
  await dashboard.open();
  await expect(page.getByRole('heading', { name: 'Send the first message' })).toBeVisible();
  await expect(page.getByText('not yet')).toHaveCount(2);
  await dashboard.pictures('overview-first-run');
  await fits(page);

  const enqueue = (await page.getByRole('region', { name: 'Put a message into a queue' }).textContent()) ?? '';
  expect(enqueue).toContain(server.origin);
  await once(shell(enqueue, path), 'exit');
  await expect(page.getByText('done: the message is there')).toBeVisible();
  await expect(tile(page, 'ready').locator('strong')).toHaveText('1');

  const work = (await page.getByRole('region', { name: 'Take it, and have it done' }).textContent()) ?? '';
  const worker = shell(`exec ${work}`, path);
  await expect(page.getByText('done: the message was acked')).toBeVisible();
  await expect(tile(page, 'ready').locator('strong')).toHaveText('0');
  worker.kill('SIGKILL');
  await page.getByRole('button', { name: 'Hide these steps' }).click();
  await expect(page.getByRole('heading', { name: 'Send the first message' })).toHaveCount(0);
  rmSync(path, { recursive: true });
});

test('the same with curl, and copied', async ({ dashboard, page }) => {
  await dashboard.open();
  await page.getByRole('button', { name: 'curl' }).click();
  const button = page.getByRole('button', { name: 'Copy: Put a message into a queue' });
  const enqueue = await dashboard.copied(() => button.click());
  expect(enqueue).toMatch(/^curl /);
  await once(shell(enqueue, ''), 'exit');
  await expect(page.getByText('done: the message is there')).toBeVisible();
  await once(shell((await page.getByRole('region', { name: 'Take it, and have it done' }).textContent()) ?? '', ''), 'exit');
  await expect(page.getByText('done: the message was acked')).toBeVisible();
});

test('each number is exact, changes by itself, and leads to its list', async ({ server, dashboard, page }) => {
  await server.enqueueMany('orders', 1_234, (at) => ({ body: `order ${at}` }));
  await server.enqueue('orders', { body: 'later', delay_ms: 3_600_000 });
  await server.die('mail', 'no such user');
  await server.lease('orders', { limit: 3 });
  await dashboard.open();
  await expect(tile(page, 'ready').locator('strong')).toHaveText('1,231');
  await expect(tile(page, 'leased').locator('strong')).toHaveText('3');
  await expect(tile(page, 'delayed').locator('strong')).toHaveText('1');
  await expect(tile(page, 'dead').locator('strong')).toHaveText('1');
  await expect(tile(page, 'overdue').locator('strong')).toHaveText('0');
  await server.enqueue('orders');
  await expect(tile(page, 'ready').locator('strong')).toHaveText('1,232');

  const lists: [string, RegExp][] = [
    ['ready', /\/messages\?state=ready$/],
    ['leased', /\/leases$/],
    ['delayed', /\/messages\?state=delayed$/],
    ['dead', /\/dead$/],
    ['overdue', /\/leases$/],
  ];
  for (const [state, address] of lists) await expect(tile(page, state)).toHaveAttribute('href', address);
  await tile(page, 'dead').click();
  await expect(page).toHaveURL(/\/dead$/);
});

test('what needs somebody stands in the order of the server, and leads there', async ({ server, dashboard, page }) => {
  await server.enqueueMany('orders', 3, () => ({ body: 'x' }));
  await dashboard.open();
  await expect(page.getByText('Nothing needs attention.', { exact: true }).first()).toBeVisible();

  await server.post('/v1/queues/orders/pause', {});
  await server.enqueue('orders', { body: 'later', delay_ms: 3_600_000 });
  await server.create('payments', { breaker: {} });
  await server.enqueue('payments');
  await server.enqueue('payments', { body: 'later', delay_ms: 3_600_000 });
  await server.post('/v1/queues/payments/breaker/trip');
  await server.die('mail', 'no such user');
  await expect(attention(page, 'breaker_open')).toBeVisible();
  await expect(attention(page, 'paused')).toBeVisible();
  await server.advance(20_000);
  await server.enqueue('mail');
  await expect(attention(page, 'dead_rising')).toBeVisible();

  const kinds = await page.locator('li[data-kind]').evaluateAll((rows) => rows.map((row) => row.getAttribute('data-kind')));
  const told = (await server.get('/v1/overview')).attention.map((item: { kind: string }) => item.kind);
  expect(kinds).toEqual(told);
  expect(kinds[0]).toBe('breaker_open');
  await expect(attention(page, 'breaker_open')).toContainText('critical');
  await expect(attention(page, 'dead_rising')).toContainText('1 message died in the last 15 minutes');
  await expect(attention(page, 'dead_rising').getByRole('link', { name: 'all its dead letters' })).toHaveAttribute('href', '/dead?queue=mail');
  await attention(page, 'paused').getByRole('link', { name: 'orders' }).click();
  await expect(page).toHaveURL(/\/queues\/orders$/);
  // Where a number leads, there are as many.
  for (const [kind, count] of [['paused', 4], ['breaker_open', 2]] as const) {
    await dashboard.open();
    await attention(page, kind).getByRole('link', { name: `${count} messages`, exact: true }).click();
    await expect(page.getByText(`These are all: ${count} messages.`)).toBeVisible();
  }
});

test('a leader of a night shift sees it at a glance', async ({ server, dashboard, page }) => {
  await server.create('payments', { breaker: {}, retry: { max_attempts: 2 } });
  await sample(server, 12, async (at) => {
    await server.enqueueMany('orders', 20 + 3 * at, (n) => ({ body: `order ${n}`, type: 'order.paid' }));
    await server.enqueueMany('payments', 5, (n) => ({ body: `payment ${n}` }));
    for (const { receipt } of await server.lease('orders', { limit: 15, consumer: 'shop-1' })) await server.ack(receipt);
    for (const { receipt } of await server.lease('payments', { limit: 2, consumer: 'bank-1' })) await server.nack(receipt, 'the bank said 503');
  });
  await server.die('mail', 'no such user');
  await server.post('/v1/queues/mail/pause', { for_ms: 600_000 });
  await server.post('/v1/queues/payments/breaker/trip');
  await dashboard.open();
  await expect(page.getByRole('heading', { name: 'Messages a second' })).toBeVisible();
  await expect(attention(page, 'breaker_open')).toContainText('probe in');
  await dashboard.pictures('overview');
  await fits(page);
  await dashboard.accessible('the overview at 400 %');
  await page.setViewportSize({ width: 1280, height: 800 });

  await page.getByRole('button', { name: 'As a table' }).click();
  await expect(page.getByRole('columnheader', { name: 'failed' })).toBeVisible();
  await page.getByRole('link', { name: '3 queues' }).click();
  await expect(page).toHaveURL(/\/queues$/);
});

test.describe('with keys', () => {
  test.use({ wanted: { keyed: true } });
  test.beforeEach(({ dashboard }) => dashboard.allow(/status of 401/));

  test('a key that may only read is not told to enqueue', async ({ server, dashboard, page }) => {
    const token = await server.key('reader', ['read', '*']);
    await dashboard.open();
    await dashboard.signIn(token);
    await expect(page.getByText('There is no queue that your key may see.')).toBeVisible();
    await expect(page.getByRole('heading', { name: 'Send the first message' })).toHaveCount(0);
  });

  test('the commands take the key from the environment', async ({ server, dashboard, page }) => {
    await dashboard.open();
    await dashboard.signIn(server.token ?? '');
    await expect(page.getByText('export REDRIVE_TOKEN=…')).toBeVisible();
    await page.getByRole('button', { name: 'curl' }).click();
    const enqueue = page.getByRole('region', { name: 'Put a message into a queue' });
    await expect(enqueue).toContainText('$REDRIVE_TOKEN');
    await expect(enqueue).not.toContainText(server.token ?? '');
  });
});
