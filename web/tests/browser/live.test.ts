// Live: one stream, a state that can be seen, and a switch that holds.

import type { Page, Request } from '@playwright/test';
import { watchRequests } from './requests';
import { standStill } from './still';
import { expect, test } from './test';

const state = (page: Page, wanted: string) => expect(page.locator('button.live')).toHaveAttribute('data-state', wanted);
const isStream = (request: Request) => new URL(request.url()).pathname === '/v1/events';

test('what happens is shown without asking', async ({ dashboard, page, server }) => {
  await server.create('orders');
  await dashboard.open('/leases');
  await state(page, 'live');
  await expect(page.getByText('No message is leased.')).toBeVisible();
  await server.enqueue('orders');
  const [lease] = await server.lease('orders', { consumer: 'worker-1' });
  await expect(page.locator('tr.item')).toContainText('worker-1');
  await server.ack(lease.receipt);
  await expect(page.locator('tr.item')).toContainText('gone');
  await expect(page.locator('tr.item')).toHaveCount(0);
});

test('a connection that is lost says so, keeps what was shown, and comes back by itself', async ({ dashboard, page, server }) => {
  await server.create('orders', { lease_timeout_ms: 3_600_000 });
  await server.enqueue('orders');
  await server.lease('orders', { consumer: 'worker-1' });
  await dashboard.open('/leases');
  await state(page, 'live');
  await expect(page.locator('tr.item')).toContainText('worker-1');
  // A server that is not there is an error of the network, and nothing else may be one.
  dashboard.allow(/net::ERR_(CONNECTION_REFUSED|INCOMPLETE_CHUNKED_ENCODING|CONNECTION_RESET|EMPTY_RESPONSE)/);
  await server.kill();
  await expect(page.getByRole('button', { name: 'Not live: connection lost' })).toBeVisible();
  await expect(page.locator('tr.item')).toContainText('worker-1');
  await page.screenshot({ path: 'screenshots/lost-light.png' });
  await dashboard.accessible('without a connection');

  await server.restart();
  await state(page, 'live');
  await server.enqueue('orders');
  await server.lease('orders', { consumer: 'worker-2' });
  await expect(page.locator('tr.item').filter({ hasText: 'worker-2' })).toBeVisible();
  await expect(page.locator('tr.item').filter({ hasText: 'worker-1' })).toBeVisible();
  await expect(page.getByRole('alert')).toHaveCount(0);
});

const leasedOf = (page: Page) => page.locator('tr[data-key="orders"] a[href^="/leases"]');
for (const [path, before, after] of [
  ['/leases', (page: Page) => expect(page.getByText('No message is leased.')).toBeVisible(), (page: Page) => expect(page.locator('tr.item')).toHaveCount(3)],
  ['/messages?queue=orders', (page: Page) => expect(page.getByText('There is no message in this queue.')).toBeVisible(), (page: Page) => expect(page.locator('tr.item')).toHaveCount(3)],
  ['/queues', (page: Page) => expect(leasedOf(page)).toHaveText('0'), (page: Page) => expect(leasedOf(page)).toHaveText('3')],
] as const) {
  test(`paused means that nothing of ${path} is fetched, however much happens; going on shows it`, async ({ dashboard, page, server }) => {
    await server.create('orders');
    const settled = watchRequests(page);
    await dashboard.open(path);
    await state(page, 'live');
    await before(page);
    await settled();
    await page.keyboard.press('l');
    await state(page, 'paused');
    const asked: string[] = [];
    page.on('request', (request) => {
      // What time it is may be asked: nothing of the page is shown by that.
      if (!request.url().endsWith('/v1/time')) asked.push(request.url());
    });
    for (let at = 0; at < 3; at++) {
      await server.enqueue('orders');
      await server.lease('orders', { consumer: 'worker-1' });
      // Each of them is told, and only counted.
      await expect(page.getByRole('button', { name: new RegExp(`Paused · ${2 * at + 2} events since`) })).toBeVisible();
    }
    expect(asked).toEqual([]);
    await before(page);
    await page.keyboard.press('l');
    await state(page, 'live');
    await after(page);
  });
}

test('what was about to be fetched when it was paused is not', async ({ dashboard, page, server }) => {
  await server.create('orders');
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  const count = (path: string) => asked.filter((one) => one === `/v1/queues/orders/${path}`).length;
  /** Lets time pass for the page, a second at a time, until it has asked for something so often. */
  const until = (path: string, times: number) =>
    expect(async () => {
      await page.clock.runFor(1_000);
      expect(count(path)).toBeGreaterThanOrEqual(times);
    }).toPass();
  await standStill(page);
  await dashboard.open('/messages?queue=orders');
  await state(page, 'live');
  await expect(page.getByText('There is no message in this queue.')).toBeVisible();
  await page.clock.runFor(10_000);

  // The list is being read when something more happens: it would be read again as soon as it was.
  let come: () => void = () => undefined;
  const late = new Promise<void>((resolve) => (come = resolve));
  await page.route(/\/v1\/queues\/orders\/messages/, async (route) => {
    await late;
    await route.fallback();
  });
  const [lists, counts] = [count('messages'), count('stats')];
  await server.enqueue('orders');
  await until('messages', lists + 1);
  await until('stats', counts + 1);
  const again = count('stats');
  await server.enqueue('orders');
  await until('stats', again + 1);
  await page.keyboard.press('l');
  await state(page, 'paused');
  const fetched = count('messages');
  come();
  await expect(page.locator('tr.item').first()).toBeVisible();
  await page.clock.runFor(30_000);
  expect(count('messages')).toBe(fetched);
  await page.keyboard.press('l');
  await until('messages', fetched + 1);
  await expect(page.locator('tr.item')).toHaveCount(2);
});

for (const [path, asks, leased] of [
  ['/queues', '/v1/stats', leasedOf],
  ['/', '/v1/overview', (page: Page) => page.locator('[data-tile=leased] strong')],
  ['/leases', '/v1/leases', (page: Page) => page.getByTestId('lease-counts').locator('strong')],
] as const) {
  test(`what happens while ${path} is read is not fetched where it is paused by then`, async ({ dashboard, page, server }) => {
    await server.create('orders');
    let asked = 0;
    page.on('request', (request) => {
      if (new URL(request.url()).pathname === asks) asked++;
    });
    await standStill(page);
    await dashboard.open(path);
    await state(page, 'live');
    // What another tab is told, this one has heard: it has the stream.
    const tail = await dashboard.another();
    await tail.goto(`${server.origin}/events`);
    await state(tail, 'live');
    await page.clock.runFor(3_000);
    const happens = async (consumer: string, events: number) => {
      await server.enqueue('orders');
      await server.lease('orders', { consumer });
      await expect(async () => {
        await page.clock.runFor(1_000);
        await expect(tail.locator('tr.item')).toHaveCount(events, { timeout: 1_000 });
      }).toPass();
      await page.clock.runFor(1_000);
    };

    let come: () => void = () => undefined;
    const late = new Promise<void>((resolve) => (come = resolve));
    await page.route((url) => url.pathname === asks, async (route) => {
      await late;
      await route.fallback();
    });
    const before = asked;
    await happens('worker-1', 2);
    expect(asked).toBe(before + 1);
    await happens('worker-2', 4);
    await page.keyboard.press('l');
    await state(page, 'paused');
    come();
    await expect(leased(page)).toHaveText(/^\s*2\b/);
    await page.clock.runFor(30_000);
    expect(asked).toBe(before + 1);
    await happens('worker-3', 6);
    expect(asked).toBe(before + 1);
    await page.keyboard.press('l');
    await page.clock.runFor(1_000);
    await expect(leased(page)).toHaveText(/^\s*3\b/);
  });
}

test('a burst of events is looked at once a second, and not once for each', async ({ dashboard, page, server }) => {
  await server.create('orders');
  const paths = ['/v1/queues/orders', '/v1/queues/orders/stats'];
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  const settled = watchRequests(page);
  await dashboard.open('/queues/orders');
  await state(page, 'live');
  await expect(page.locator('[data-tile=ready] strong')).toHaveText('0');
  await settled();
  asked.length = 0;
  const began = performance.now();
  for (let at = 0; at < 300; at++) await server.enqueue('orders');
  await expect(page.locator('[data-tile=ready] strong')).toHaveText('300');
  // One for each second that was begun, and one that looks every ten seconds.
  const most = Math.ceil((performance.now() - began) / 1_000) + 1 + Math.ceil((performance.now() - began) / 10_000);
  for (const path of paths) {
    const times = asked.filter((one) => one === path).length;
    expect(times, path).toBeGreaterThan(0);
    expect(times, path).toBeLessThanOrEqual(most);
  }
});

test('two tabs share one connection, and the second takes over when the first is closed', async ({ context, dashboard, page, server }) => {
  await server.create('orders');
  let streams = 0;
  context.on('request', (request) => {
    if (isStream(request)) streams++;
  });
  await dashboard.open('/leases');
  await state(page, 'live');
  const second = await dashboard.another();
  await second.goto(`${server.origin}/leases`);
  await state(second, 'live');
  expect(streams).toBe(1);

  await server.enqueue('orders');
  await server.lease('orders', { consumer: 'worker-1' });
  await expect(page.locator('tr.item')).toContainText('worker-1');
  await expect(second.locator('tr.item')).toContainText('worker-1');
  expect(streams).toBe(1);

  const takenOver = context.waitForEvent('request', isStream);
  await page.close();
  // It goes on behind the last event that was told.
  expect(Number((await takenOver).headers()['last-event-id'])).toBeGreaterThan(0);
  await server.enqueue('orders');
  await server.lease('orders', { consumer: 'worker-2' });
  await expect(second.locator('tr.item').filter({ hasText: 'worker-2' })).toBeVisible();
  await state(second, 'live');
  expect(streams).toBe(2);
});

test('without a stream the page looks for itself, slowly', async ({ dashboard, page, server }) => {
  await server.create('orders');
  await page.clock.install();
  dashboard.allow(/net::ERR_FAILED/);
  await page.route(/\/v1\/events/, (route) => route.abort());
  await dashboard.open('/leases');
  await expect(page.getByRole('button', { name: /Not live: connection lost|Connecting/ })).toBeVisible();
  await server.enqueue('orders');
  await server.lease('orders', { consumer: 'worker-1' });
  await expect(async () => {
    await page.clock.runFor(5_000);
    await expect(page.locator('tr.item')).toContainText('worker-1', { timeout: 1_000 });
  }).toPass();
});
