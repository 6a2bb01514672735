// Keys, and the trail of what was done with them.

import { fitsNarrow } from './narrow';
import type { Json } from './server';
import { expect, test } from './test';

test.describe('with keys', () => {
  test.use({ wanted: { keyed: true } });

  test('keys are listed with what they may do, and one is made; its token is shown once and works', async ({ server, dashboard, page }) => {
    await server.key('watcher', ['read', '*']);
    await server.key('mailer', ['produce', 'mail'], ['consume', 'mail.*']);
    await dashboard.open('/access');
    await dashboard.signIn(server.token ?? '');
    await expect(page.locator('tr.item')).toHaveCount(2);
    await expect(page.locator('tr.item').filter({ hasText: 'mailer' })).toContainText('produce:mail, consume:mail.*');
    await expect(page.locator('tr.item').filter({ hasText: 'watcher' })).toContainText('active');
    await dashboard.pictures('access-keys');

    await page.getByRole('button', { name: 'Create a key…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('ops');
    await dialog.getByLabel('What grant 1 is for').selectOption('manage');
    await dialog.getByLabel('Queues of grant 1').fill('orders.*');
    await dialog.getByRole('button', { name: 'Another grant' }).click();
    await dialog.getByLabel('Queues of grant 2').fill('mail');
    await dialog.getByLabel('Expires').fill('2099-01-01T00:00:00');
    await dialog.getByText('Quotas').click();
    await dialog.getByLabel('Queues, at most').fill('many');
    await dialog.getByRole('button', { name: 'Create a key' }).click();
    await expect(dialog.getByLabel('Queues, at most')).toHaveAttribute('aria-invalid', 'true');
    await dialog.getByLabel('Queues, at most').fill('5');
    await dashboard.pictures('access-create');
    await dialog.getByRole('button', { name: 'Create a key' }).click();
    const token = await dialog.getByTestId('secret').inputValue();
    expect(token).toMatch(/^rdk_/);
    // What is shown once is not lost to a key that is pressed too often.
    for (let times = 0; times < 3; times++) await page.keyboard.press('Escape');
    await expect(dialog.getByTestId('secret')).toBeVisible();
    await dialog.getByRole('button', { name: 'I have kept it' }).click();
    await expect(page.locator('tr.item').filter({ hasText: 'ops' })).toContainText('manage:orders.*, read:mail');
    expect(await page.content()).not.toContain(token);
    const who = (await server.call('GET', '/v1/whoami', undefined, token)) as Json;
    expect(who.key).toMatchObject({ name: 'ops', queues_max: 5, expires_at: '2099-01-01T00:00:00.000Z', grants: [{ scope: 'manage', queues: 'orders.*' }, { scope: 'read', queues: 'mail' }] });
  });

  test('a key is rotated with an overlap, and revoked after a question', async ({ server, dashboard, page }) => {
    const before = await server.key('watcher', ['read', '*']);
    await dashboard.open('/access');
    await dashboard.signIn(server.token ?? '');
    const row = page.locator('tr.item').filter({ hasText: 'watcher' });
    await row.getByRole('button', { name: 'Rotate…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('The one before works for another').fill('1h');
    await dialog.getByRole('button', { name: 'Rotate' }).click();
    const after = await dialog.getByTestId('secret').inputValue();
    expect(after).not.toBe(before);
    await page.keyboard.press('Escape');
    await expect(dialog.getByTestId('secret')).toBeVisible();
    await dialog.getByRole('button', { name: 'I have kept it' }).click();
    for (const token of [before, after]) await server.call('GET', '/v1/whoami', undefined, token);

    await row.getByRole('button', { name: 'Revoke…' }).click();
    await expect(dialog).toContainText('The key ends at once.');
    await dialog.getByRole('button', { name: 'Revoke' }).click();
    await expect(row).toContainText('revoked');
    await expect(row.getByRole('button')).toHaveCount(0);
    for (const token of [before, after]) await expect(server.call('GET', '/v1/whoami', undefined, token)).rejects.toThrow('401');
  });

  test('who revokes their own key is told so, and is out', async ({ server, dashboard, page }) => {
    dashboard.allow(/status of 401/);
    const token = await server.key('me', ['admin', '*']);
    await dashboard.open('/access');
    await dashboard.signIn(token);
    await expect(page.locator('tr.item').filter({ hasText: 'me' })).toContainText('yours');
    await page.locator('tr.item').filter({ hasText: 'yours' }).getByRole('button', { name: 'Revoke…' }).click();
    await expect(page.getByRole('dialog')).toContainText('you are out, too');
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await expect(page.getByLabel('API key')).toBeVisible();
  });

  test('the trail is read from its end, grows as somebody scrolls, and its filter is in the address', async ({ server, dashboard, page }) => {
    await server.create('orders');
    for (let round = 0; round < 130; round++) {
      await server.post('/v1/queues/orders/pause', {});
      await server.post('/v1/queues/orders/resume', {});
    }
    const watcher = await server.key('watcher', ['read', '*']);
    await expect(server.call('DELETE', '/v1/queues/orders', undefined, watcher)).rejects.toThrow('403');
    await dashboard.open('/access?show=audit');
    await dashboard.signIn(server.token ?? '');
    const first = page.locator('tr.item').first();
    await expect(page.locator('tr.item').filter({ hasText: 'FORBIDDEN' })).toContainText('watcher');
    await dashboard.pictures('access-audit');
    const box = page.getByRole('region', { name: 'Audit trail' });
    const table = box.getByRole('table');
    // Each time somebody comes to the end, there may be more behind it.
    await expect.poll(async () => {
      await box.evaluate((element) => element.scrollTo(0, element.scrollHeight));
      return page.locator('tr.item').last().textContent();
    }).toContain('create_queue');
    await expect(table).toHaveAttribute('aria-rowcount', '264');

    await page.getByLabel('What was done').fill('delete_queue');
    await page.getByLabel('What was done').blur();
    await expect(page.locator('tr.item')).toHaveCount(1);
    await expect(page).toHaveURL(/what=delete_queue/);
    await page.reload();
    await expect(page.locator('tr.item')).toHaveCount(1);
    await expect(first).toContainText('FORBIDDEN');
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.locator('tr.item').filter({ hasText: 'create_key' }).getByRole('link', { name: 'create_key' }).click();
    await expect(page).toHaveURL(/what=create_key/);
    await expect(page.locator('tr.item')).toHaveCount(1);
    // What is done now appears.
    await page.goto(`${server.origin}/access?show=audit`);
    await server.post('/v1/queues/orders/pause', {});
    await expect(first).toContainText('pause_queue');
  });

  test('keys, the trail and the dialog fit the smallest screen', async ({ server, dashboard, page }) => {
    await server.key('a name that is as long as the name of a key may be, which is eighty bytes in all', ['read', '*']);
    await dashboard.open('/access?show=audit');
    await dashboard.signIn(server.token ?? '');
    await expect(page.locator('tr.item')).toHaveCount(1);
    await fitsNarrow(page);
    await dashboard.open('/access');
    await expect(page.locator('tr.item')).toHaveCount(1);
    await fitsNarrow(page);
    await page.getByRole('button', { name: 'Create a key…' }).click();
    await page.getByRole('button', { name: 'Another grant' }).click();
    expect(await page.locator('dialog').evaluate((one) => one.scrollWidth - one.clientWidth)).toBeLessThanOrEqual(0);
    await dashboard.accessible('a new key at 400 %');
  });

  test('who does not administrate has neither the page nor its link', async ({ server, dashboard, page }) => {
    await dashboard.open('/access');
    await dashboard.signIn(await server.key('ops', ['manage', '*']));
    await expect(page.getByText('This page is for keys that may administrate.')).toBeVisible();
    await expect(page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Access and audit' })).toHaveCount(0);
    await expect(page.locator('main').getByRole('button')).toHaveCount(0);
  });
});

test('where no key is needed the page says so, offers none, and still has the trail', async ({ server, dashboard, page }) => {
  await server.create('orders');
  await dashboard.open('/access');
  await expect(page.getByText('This server wants no key')).toBeVisible();
  await expect(page.getByRole('button', { name: /Create a key/ })).toHaveCount(0);
  await page.getByRole('link', { name: 'Audit trail' }).click();
  await expect(page.locator('tr.item').first()).toContainText('create_queue');
});
