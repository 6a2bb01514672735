// Everything without a mouse.

import type { Page } from '@playwright/test';
import { expect, test } from './test';

const title = (page: Page) => page.getByRole('heading', { level: 1 });

async function keys(page: Page, ...pressed: string[]): Promise<void> {
  for (const key of pressed) await page.keyboard.press(key);
}

test('a walk through the pages by keys alone', async ({ dashboard, page, server }) => {
  await server.create('mail');
  await server.create('orders');
  const id = await server.enqueue('orders');
  await dashboard.open();
  await expect(title(page)).toHaveText('Overview');

  await keys(page, 'g', 'q');
  await expect(title(page)).toHaveText('Queues');
  await expect(page.locator('tr.item')).toHaveCount(2);
  // Into the filter, out of it, down to a row, and in.
  await keys(page, '/');
  await expect(page.locator('[data-filter]')).toBeFocused();
  await page.keyboard.type('ord');
  await expect(page.locator('tr.item')).toHaveCount(1);
  // What is typed is typed: no letter of it is a key.
  await page.keyboard.type('gq');
  await expect(page.locator('[data-filter]')).toHaveValue('ordgq');
  await keys(page, 'Backspace', 'Backspace');
  await expect(page.locator('tr.item')).toHaveCount(1);
  await keys(page, 'Escape');
  await expect(page.locator('[data-filter]')).not.toBeFocused();
  await keys(page, 'j');
  await expect(page.locator('tr.item[data-index="0"]')).toBeFocused();
  await keys(page, 'Enter');
  await expect(page).toHaveURL(/\/queues\/orders$/);

  await keys(page, 'g', 'l');
  await expect(title(page)).toHaveText('Leases');
  await keys(page, 'g', 'e');
  await expect(title(page)).toHaveText('Events');
  await keys(page, 'g', ',');
  await expect(title(page)).toHaveText('Settings');
  await keys(page, 'g', 'm');
  await expect(title(page)).toHaveText('Messages');
  // To the field of the queue by Tab, which says where it is.
  const queue = page.getByRole('combobox', { name: 'Queue' });
  for (let tabs = 0; tabs < 50 && !(await queue.evaluate((field) => field === document.activeElement)); tabs++) await keys(page, 'Tab');
  await expect(queue).toBeFocused();
  await page.keyboard.type('orders');
  await expect(page.getByRole('option')).toHaveCount(1);
  await keys(page, 'Enter');
  await expect(page).toHaveURL(/\/messages\?queue=orders$/);
  await expect(page.locator('tr.item')).toHaveCount(1);
  // On to the filter, and out of it: the first Escape takes away what is offered there.
  await keys(page, 'Tab');
  await expect(page.locator('[data-filter]')).toBeFocused();
  await keys(page, 'Escape', 'Escape');
  await expect(page.locator('[data-filter]')).not.toBeFocused();
  await keys(page, 'j', 'Enter');
  await expect(page).toHaveURL(new RegExp(`/queues/orders/messages/${id}`));
  await page.goBack();
  await expect(title(page)).toHaveText('Messages');
});

test('the list of keys, and Escape', async ({ dashboard, page }) => {
  await dashboard.open('/leases');
  await keys(page, '?');
  const list = page.getByRole('dialog', { name: 'Keys' });
  await expect(list).toBeVisible();
  for (const key of ['?', '/', 'Ctrl+k', 'g l', 'j', 'k', 'x', 'l', 't', 'Esc']) await expect(list.locator('kbd').getByText(key, { exact: true })).toBeVisible();
  await dashboard.pictures('keys');
  // In front of a dialog no key acts on what is behind it.
  await keys(page, 'g', 'q', 'Control+k');
  await expect(title(page)).toHaveText('Leases');
  await expect(page.getByRole('combobox')).toHaveCount(0);
  await keys(page, 'Escape');
  await expect(list).toHaveCount(0);
});

test('the palette goes to pages and queues, and does things', async ({ dashboard, page, server }) => {
  await server.create('orders');
  await server.create('old-orders');
  await dashboard.open();
  await keys(page, 'Control+k');
  const box = page.getByRole('combobox');
  await expect(box).toBeFocused();
  await page.keyboard.type('orders');
  await expect(page.getByRole('option')).toHaveText([/old-orders/, /orders/]);
  await dashboard.pictures('palette');
  await keys(page, 'ArrowDown', 'Enter');
  await expect(page).toHaveURL(/\/queues\/orders$/);
  // From within a field, too.
  await keys(page, 'Control+k');
  await page.keyboard.type('sett');
  await keys(page, 'Enter');
  await expect(title(page)).toHaveText('Settings');
  await keys(page, 'Control+k');
  await page.keyboard.type('live');
  await keys(page, 'Enter');
  await expect(page.getByRole('button', { name: 'Paused' })).toBeVisible();
  await keys(page, 'Control+k', 'Escape');
  await expect(box).toHaveCount(0);
});

test('messages and consumers have two letters each', async ({ dashboard, page }) => {
  await dashboard.open('/leases');
  for (const [letter, name] of [['j', 'Messages'], ['w', 'Consumers'], ['m', 'Messages'], ['c', 'Consumers']] as const) {
    await keys(page, 'g', letter);
    await expect(title(page)).toHaveText(name);
  }
});

test.describe('with a key that does not administrate', () => {
  test.use({ wanted: { keyed: true } });

  test('no key and no palette leads to a page that would be refused', async ({ dashboard, page, server }) => {
    await dashboard.open('/leases');
    await dashboard.signIn(await server.key('ann', ['manage', '*']));
    await keys(page, 'g', 'a');
    await keys(page, '?');
    const list = page.getByRole('dialog', { name: 'Keys' });
    await expect(list.locator('kbd').getByText('g q', { exact: true })).toBeVisible();
    await expect(list.locator('kbd').getByText('g a', { exact: true })).toHaveCount(0);
    await keys(page, 'Escape', 'Control+k');
    await page.keyboard.type('access');
    await expect(page.getByText('Nothing of that name.')).toBeVisible();
    await keys(page, 'Escape');
    await expect(title(page)).toHaveText('Leases');
  });
});

test('single letters can be switched off, and Ctrl+K goes on', async ({ dashboard, page }) => {
  await dashboard.open('/settings');
  await page.getByRole('checkbox', { name: 'Single letters are shortcuts' }).uncheck();
  for (const key of ['?', 'l', 't', '/']) await keys(page, key);
  await keys(page, 'g', 'q');
  await expect(title(page)).toHaveText('Settings');
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await expect(page.getByRole('button', { name: 'Live' })).toHaveAttribute('data-state', 'live');
  await page.reload();
  await expect(page.getByRole('checkbox', { name: 'Single letters are shortcuts' })).not.toBeChecked();
  await keys(page, 'g', 'q');
  await expect(title(page)).toHaveText('Settings');
  await keys(page, 'Control+k');
  await expect(page.getByRole('combobox')).toBeFocused();
  await page.keyboard.type('queues');
  await keys(page, 'Enter');
  await expect(title(page)).toHaveText('Queues');
});

test('two keys belong together only for a moment', async ({ dashboard, page }) => {
  await page.clock.install();
  await dashboard.open();
  await keys(page, 'g');
  await page.clock.fastForward(5_000);
  await keys(page, 'q');
  await expect(title(page)).toHaveText('Overview');
  expect(new URL(page.url()).pathname).toBe('/');
  await keys(page, 'g', 'Shift', 'l');
  await expect(title(page)).toHaveText('Leases');
});

test('rows stay where they are while the keyboard is in them', async ({ dashboard, page, server }) => {
  await server.create('orders');
  for (const lease_ms of [20_000, 30_000, 40_000]) {
    await server.enqueue('orders');
    await server.lease('orders', { consumer: `for-${lease_ms}`, lease_ms });
  }
  await dashboard.open('/leases');
  await expect(page.locator('tr.item')).toHaveCount(3);
  await keys(page, 'j', 'j');
  const second = page.locator('tr.item[data-index="1"]');
  await expect(second).toBeFocused();
  await expect(second).toContainText('for-30000');
  // One that ends first of all would be above it.
  await server.enqueue('orders');
  await server.lease('orders', { consumer: 'new', lease_ms: 10_000 });
  await expect(page.getByRole('button', { name: '1 newer, 0 gone: show' })).toBeVisible();
  await expect(second).toBeFocused();
  await expect(second).toContainText('for-30000');
  await page.getByRole('button', { name: '1 newer, 0 gone: show' }).focus();
  await expect(page.locator('tr.item').first()).toContainText('new');
});
