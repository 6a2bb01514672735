// Events: the live tail.

import { expect, test } from './test';

const rows = 'tr.item';

test('what happens is listed as it happens, the newest at the top', async ({ dashboard, page, server }) => {
  await dashboard.open('/events');
  await expect(page.locator('button.live')).toHaveAttribute('data-state', 'live');
  await expect(page.getByText('Nothing has happened since this page was opened.')).toBeVisible();
  await server.create('orders', { retry: { max_attempts: 1 } });
  await expect(page.locator(rows).first()).toContainText('queue');
  await expect(page.locator(rows).first()).toContainText('created');
  await server.enqueueMany('orders', 3, () => ({ body: 'x' }));
  await expect(page.locator(rows).first()).toContainText('enqueue');
  await expect(page.locator(rows).first().locator('td').nth(3)).toHaveText('3');
  await expect(page.locator(rows).first()).toContainText('producer');
  const [lease] = await server.lease('orders', { consumer: 'worker-1' });
  await expect(page.locator(rows).first()).toContainText('lease');
  await server.nack(lease.receipt, 'no');
  const died = page.locator(rows).filter({ hasText: 'move_to_dlq' });
  await expect(died).toBeVisible();
  await expect(died).toContainText('orders');
  await server.post('/v1/queues/orders/pause');
  await expect(page.locator(rows).first()).toContainText('paused');
  await expect(page.locator(rows).first()).toContainText('operator');
  await dashboard.pictures('events');
  await died.getByRole('link', { name: 'orders' }).click();
  await expect(page).toHaveURL(/\/queues\/orders$/);
});

test('type and queue are chosen in the address', async ({ dashboard, page, server }) => {
  await server.create('orders');
  await server.create('mail');
  await dashboard.open('/events?type=ack,lease&queue=mail');
  await expect(page.locator('button.live')).toHaveAttribute('data-state', 'live');
  await expect(page.getByRole('checkbox', { name: 'ack', exact: true })).toBeChecked();
  await expect(page.getByRole('checkbox', { name: 'nack', exact: true })).not.toBeChecked();
  await expect(page.getByLabel('Queue', { exact: true })).toHaveValue('mail');
  for (const queue of ['orders', 'mail']) {
    await server.enqueue(queue);
    const [lease] = await server.lease(queue);
    await server.ack(lease.receipt);
  }
  const types = page.locator(`${rows} td:nth-of-type(2)`);
  await expect(types).toHaveText(['ack', 'lease']);
  await expect(page.locator(rows).filter({ hasText: 'orders' })).toHaveCount(0);
  await page.getByRole('checkbox', { name: 'lease', exact: true }).uncheck();
  await expect(types).toHaveText(['ack']);
  await expect(page).toHaveURL(/type=ack&queue=mail/);
  await page.getByRole('button', { name: 'Show all' }).click();
  await server.enqueue('orders');
  await expect(types).toHaveText(['enqueue', 'ack']);
  await page.getByRole('button', { name: 'Clear' }).click();
  await expect(page.locator(rows)).toHaveCount(0);
});

test('what came while the page stood still is missing, and the list says how much', async ({ dashboard, page, server }) => {
  await server.create('orders');
  await dashboard.open('/events');
  await expect(page.locator('button.live')).toHaveAttribute('data-state', 'live');
  await server.enqueue('orders');
  await expect(page.locator(rows)).toHaveCount(1);
  await page.keyboard.press('l');
  await expect(page.getByText('Paused: what happens now is counted and not shown.')).toBeVisible();
  for (let at = 1; at <= 2; at++) {
    await server.enqueue('orders');
    await expect(page.getByRole('button', { name: new RegExp(`Paused · ${at} events since`) })).toBeVisible();
  }
  await page.keyboard.press('l');
  await expect(page.getByTestId('gap')).toHaveText('2 events came here while the page stood still');
  await server.enqueue('orders');
  await expect(page.locator(rows)).toHaveCount(3);
  await expect(page.locator(rows).nth(1)).toContainText('2 events came here');
});

test('after a restart the list says that some may be missing, and goes on', async ({ dashboard, page, server }) => {
  await server.create('orders');
  await dashboard.open('/events');
  await expect(page.locator('button.live')).toHaveAttribute('data-state', 'live');
  await server.enqueueMany('orders', 1, () => ({ body: 'x' }));
  await expect(page.locator(rows)).toHaveCount(1);
  dashboard.allow(/net::ERR_(CONNECTION_REFUSED|INCOMPLETE_CHUNKED_ENCODING|CONNECTION_RESET|EMPTY_RESPONSE)/);
  await server.kill();
  await expect(page.getByText('The connection is lost.')).toBeVisible();
  await server.restart();
  await expect(page.getByTestId('gap')).toContainText('Some events are missing here');
  await server.enqueue('orders');
  await expect(page.locator(rows).first()).toContainText('enqueue');
});

test('a thousand are kept, and no more', async ({ dashboard, page, server }) => {
  await server.create('orders');
  await dashboard.open('/events?type=lease');
  await expect(page.locator('button.live')).toHaveAttribute('data-state', 'live');
  // As the server would tell them, only faster than it can be made to.
  await page.evaluate(async () => {
    const name = await new Promise<string>((resolve) => {
      void navigator.locks.query().then((locks) => resolve(locks.held?.find((lock) => lock.name?.startsWith('redrive.events.'))?.name ?? ''));
    });
    const channel = new BroadcastChannel(name);
    for (let batch = 0; batch < 12; batch++) {
      const events = Array.from({ length: 100 }, (_, at) => ({
        id: String(batch * 100 + at + 1),
        type: 'lease',
        timestamp: 0,
        payload: { queue: 'orders', count: batch * 100 + at, dlq_count: 0, triggered_by: 'consumer' },
      }));
      channel.postMessage({ kind: 'events', events });
    }
  });
  await expect(page.locator(rows).first().locator('td').nth(3)).toHaveText('1,199');
  await expect(page.getByRole('table')).toHaveAttribute('aria-rowcount', '1001');
  expect(await page.locator(rows).count()).toBeLessThan(100);
});
