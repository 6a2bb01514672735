// Settings: the key in use, what was chosen for this device, and what answers.

import { expect, test } from './test';

test('the server, its store and the clock are told', async ({ dashboard, page }) => {
  await dashboard.open('/settings');
  await expect(page.getByText('This server wants no key')).toBeVisible();
  const server = page.getByRole('region', { name: 'Server' });
  await expect(server).toContainText('embedded');
  await expect(server).toContainText('a loss of power');
  await expect(page.getByTestId('skew')).toHaveText(/agrees with it|ahead of it|behind it/);
  const [description] = await Promise.all([page.waitForEvent('popup'), server.getByRole('link', { name: /OpenAPI/ }).click()]);
  await expect(description).toHaveURL(/\/openapi\.json$/);
  await dashboard.pictures('settings');
});

test('times are those of this machine, or UTC, and the choice is kept', async ({ dashboard, page }) => {
  await dashboard.open('/settings');
  const clock = page.locator('.clock');
  await expect(page.getByRole('radio', { name: /as on this machine/ })).toBeChecked();
  await expect(clock).not.toContainText('UTC');
  await page.getByRole('radio', { name: 'UTC', exact: true }).check();
  await expect(clock).toContainText('UTC');
  await page.reload();
  await expect(page.getByRole('radio', { name: 'UTC', exact: true })).toBeChecked();
  await expect(clock).toContainText('UTC');
});

test('the keys are a button away', async ({ dashboard, page }) => {
  await dashboard.open('/settings');
  await page.getByRole('button', { name: 'Show the keys' }).click();
  await expect(page.getByRole('dialog', { name: 'Keys' })).toBeVisible();
});

test.describe('with keys', () => {
  test.use({ wanted: { keyed: true } });

  test('the key in use is told by name, id and grants, and never its secret', async ({ dashboard, page, server }) => {
    const token = await server.key('on call', ['manage', 'orders-*'], ['read', '*']);
    await dashboard.open('/settings');
    await dashboard.signIn(token);
    const panel = page.getByRole('region', { name: 'API key' });
    await expect(panel).toContainText('on call');
    await expect(panel).toContainText('manage in orders-*');
    await expect(panel).toContainText('read in every queue');
    await expect(panel).toContainText('never');
    await expect(panel).toContainText('in this tab, until it is closed');
    const { id } = (await server.call('GET', '/v1/whoami', undefined, token)).key;
    await expect(panel).toContainText(id);
    expect(await page.content()).not.toContain(token);
    await dashboard.pictures('settings-key');
    await panel.getByRole('button', { name: 'Use another key' }).click();
    await expect(page.getByLabel('API key')).toBeVisible();

    await page.getByLabel('Keep it on this device').check();
    await dashboard.signIn(token);
    await expect(panel).toContainText('on this device, until you sign out');
    await panel.getByRole('button', { name: 'Sign out' }).click();
    expect(await page.evaluate(() => JSON.stringify({ ...localStorage }))).not.toContain('rdk_');
  });
});
