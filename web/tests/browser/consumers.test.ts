// Consumers: what each holds, how fast it works, and how often it fails.

import { expect, test } from './test';

test('each consumer has a row with what it holds, and leads to its leases', async ({ dashboard, page, server }) => {
  await server.create('orders', { lease_timeout_ms: 30_000 });
  await server.create('mail', { lease_timeout_ms: 3_600_000 });
  await server.holdSweeper(true);
  await server.enqueueMany('orders', 4, (at) => ({ body: `order ${at}` }));
  await server.enqueueMany('mail', 2, (at) => ({ body: `mail ${at}` }));
  await server.lease('orders', { consumer: 'checkout-1', limit: 2 });
  await server.lease('mail', { consumer: 'checkout-1' });
  const [done, failed] = await server.lease('orders', { consumer: 'checkout-2', limit: 2 });
  await server.ack(done.receipt);
  await server.nack(failed.receipt, 'no route to host');
  await server.advance(40_000);
  await dashboard.open('/consumers');
  const one = page.locator('tr.item', { hasText: 'checkout-1' });
  const two = page.locator('tr.item', { hasText: 'checkout-2' });
  await expect(one.locator('td').nth(1)).toHaveText('3');
  await expect(one.locator('td').nth(2)).toHaveText('2');
  await expect(one.locator('td').nth(2).locator('svg')).toBeVisible();
  await expect(one.locator('td').nth(3)).toHaveText('40 s');
  await expect(one.locator('td').nth(6)).toContainText('mail, orders');
  await expect(two.locator('td').nth(1)).toHaveText('0');
  await expect(two.locator('td').nth(4)).toContainText('· 1');
  await expect(two.locator('td').nth(5)).toContainText('· 1');
  await expect(page.getByTestId('consumer-count')).toHaveText('2 consumers');
  await page.mouse.move(0, 0);
  await dashboard.pictures('consumers');
  await one.locator('td').nth(1).getByRole('link').click();
  await expect(page).toHaveURL(/\/leases\?consumer=checkout-1$/);
  await expect(page.locator('tr.item')).toHaveCount(3);
});

test('the list is live; its filter and order are in the address', async ({ dashboard, page, server }) => {
  await server.create('orders');
  await dashboard.open('/consumers');
  await expect(page.getByText('Nobody has taken a message since this server started.')).toBeVisible();
  await server.enqueueMany('orders', 6, () => ({ body: 'x' }));
  for (const [consumer, limit] of [['apple', 1], ['pear', 3], ['pineapple', 2]] as const) await server.lease('orders', { consumer, limit });
  const names = page.locator('tr.item td:first-of-type');
  await expect(names).toHaveText(['apple', 'pear', 'pineapple']);
  await page.getByRole('button', { name: 'Holds' }).click();
  await expect(names).toHaveText(['pear', 'pineapple', 'apple']);
  await page.keyboard.press('/');
  await page.keyboard.type('Apple');
  await expect(names).toHaveText(['pineapple', 'apple']);
  await page.reload();
  await expect(names).toHaveText(['pineapple', 'apple']);
  await expect(page.getByLabel('Consumer', { exact: true })).toHaveValue('Apple');
  await page.getByLabel('Consumer', { exact: true }).fill('nobody');
  await expect(page.getByText('No consumer has that in its name.')).toBeVisible();
  await page.getByLabel('Consumer', { exact: true }).fill('');
  await page.getByLabel('Consumer', { exact: true }).blur();
  await expect(names).toHaveText(['pear', 'pineapple', 'apple']);
  await page.keyboard.press('j');
  await expect(page.locator('tr.item').first()).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/leases\?consumer=pear$/);
});

test('a consumer of which only leases are known says so', async ({ dashboard, page, server }) => {
  await server.create('orders', { lease_timeout_ms: 3_600_000 });
  await server.enqueue('orders');
  await server.lease('orders', { consumer: 'from-before' });
  // After a restart nobody has been seen, and the lease is still there.
  await server.kill();
  await server.restart();
  await dashboard.open('/consumers');
  await expect(page.locator('tr.item')).toContainText('from-before elsewhere');
  await expect(page.getByText('only its leases are known')).toBeVisible();
});

test('the name of a consumer is text, whatever is in it', async ({ dashboard, page, server }) => {
  await server.create('orders');
  await server.enqueueMany('orders', 2, () => ({ body: 'x' }));
  await server.lease('orders', { consumer: '<img src=x onerror=alert(1)>' });
  await server.lease('orders', { consumer: 'worker\u202Eexe' });
  await dashboard.open('/consumers');
  await expect(page.getByText('<img src=x onerror=alert(1)>')).toBeVisible();
  await expect(page.getByText('worker⟨U+202E⟩exe')).toBeVisible();
});
