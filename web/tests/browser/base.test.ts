// The page below another path, as behind a proxy that has other things at the root.

import { spawn, spawnSync } from 'node:child_process';
import { dirname, resolve } from 'node:path';
import type { Json } from './server';
import { expect, test } from './test';

test.use({ wanted: { base: '/ops/redrive' } });

test('a deep link, a reload, what happens, an action and a command: all below the path', async ({ server, dashboard, page }) => {
  const outside: string[] = [];
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    if (!pathname.startsWith('/ops/redrive/')) outside.push(pathname);
  });
  await server.create('orders');
  const id = await server.enqueue('orders', { body: 'one' });

  await dashboard.open(`/queues/orders/messages/${id}`);
  await expect(page.locator('main')).toContainText(id);
  await page.reload();
  await expect(page.locator('main')).toContainText(id);
  await page.keyboard.press('g');
  await page.keyboard.press('q');
  await expect(page).toHaveURL(`${server.origin}/ops/redrive/queues`);
  await page.reload();
  const row = page.locator('tr[data-key="orders"]');
  await expect(row).toBeVisible();

  await expect(page.locator('button.live')).toHaveAttribute('data-state', 'live');
  await server.create('mail');
  await expect(page.locator('tr[data-key="mail"]')).toBeVisible();
  await row.getByRole('button', { name: 'Pause orders' }).click();
  await expect(row).toContainText('paused');
  expect((await server.get('/v1/queues/orders')).paused).toBe(true);
  await row.getByRole('link', { name: 'orders', exact: true }).click();
  await expect(page).toHaveURL(`${server.origin}/ops/redrive/queues/orders`);

  await dashboard.open(`/queues/orders/messages/${id}`);
  const curl = page.locator('tr[data-command="show"]').getByRole('button', { name: 'curl' });
  await expect(curl).toBeVisible();
  expect(await dashboard.copied(() => curl.click())).toContain(`${server.origin}/ops/redrive/v1/`);
  expect(outside).toEqual([]);
});

test('the commands of the first run do below the path what they say', async ({ server, dashboard, page }) => {
  const bin = dirname(resolve(process.env.REDRIVE_BIN ?? '../target/debug/redrive'));
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` };
  const run = (command: string) => {
    const { status, stderr } = spawnSync('sh', ['-c', command], { encoding: 'utf8', env });
    expect(status, `${command}\n${stderr}`).toBe(0);
  };
  const shown = (name: string) => page.getByRole('region', { name });
  await dashboard.open();
  run((await page.locator('code').filter({ hasText: 'redrive queue create' }).textContent()) ?? '');
  // A queue without a message is not what was asked for yet.
  await expect(page.locator('[data-tile=ready] strong')).toHaveText('0');
  await expect(page.getByText('not yet')).toHaveCount(2);
  expect((await server.get('/v1/queues')).queues.map((queue: Json) => queue.name)).toEqual(['hello']);
  run((await shown('Put a message into a queue').textContent()) ?? '');
  await expect(page.locator('[data-tile=ready] strong')).toHaveText('1');
  await expect(page.getByText('done: the message is there')).toBeVisible();
  const worker = spawn('sh', ['-c', `exec ${await shown('Take it, and have it done').textContent()}`], { env, stdio: 'ignore' });
  await expect(page.getByText('done: the message was acked')).toBeVisible();
  worker.kill('SIGKILL');
});
