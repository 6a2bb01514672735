// Light, dark, or as the system has it.

import type { Page } from '@playwright/test';
import { expect, test } from './test';

const LIGHT = 'rgb(255, 255, 255)';
const DARK = 'rgb(15, 19, 25)';

const background = (page: Page, colour: string) => expect(page.locator('html')).toHaveCSS('background-color', colour);

test('the page follows the system, until somebody chooses, and keeps the choice', async ({ dashboard, page }) => {
  await dashboard.open('/settings');
  await background(page, LIGHT);
  await page.emulateMedia({ colorScheme: 'dark' });
  await background(page, DARK);
  await page.getByRole('radio', { name: 'light' }).check();
  await background(page, LIGHT);
  await page.reload();
  await background(page, LIGHT);
  await expect(page.getByRole('radio', { name: 'light' })).toBeChecked();
  await page.emulateMedia({ colorScheme: 'light' });
  await page.getByRole('radio', { name: 'dark' }).check();
  await background(page, DARK);
  await page.getByRole('radio', { name: 'as the system has it' }).check();
  await background(page, LIGHT);
});

test('t goes through the themes', async ({ dashboard, page }) => {
  await dashboard.open('/leases');
  const button = page.getByRole('button', { name: /^Theme/ });
  for (const theme of ['light', 'dark', 'system']) {
    await page.keyboard.press('t');
    await expect(button).toHaveAccessibleName(`Theme: ${theme}`);
  }
  await button.click();
  await expect(button).toHaveAccessibleName('Theme: light');
});

test('a theme that was chosen is in force before anything is shown', async ({ dashboard, page }) => {
  await page.addInitScript(() => localStorage.setItem('redrive.settings', '{"theme":"dark"}'));
  // The page itself is late: what is drawn before it comes is dark already.
  let come: () => void = () => undefined;
  const late = new Promise<void>((resolve) => (come = resolve));
  const held = page.waitForRequest(/\/assets\/.*\.js$/);
  await page.route(/\/assets\/.*\.js$/, async (route) => {
    await late;
    await route.fallback();
  });
  const opened = dashboard.open('/settings');
  await held;
  await background(page, DARK);
  expect(await page.locator('h1').count()).toBe(0);
  come();
  await opened;
  await background(page, DARK);
  await expect(page.getByRole('radio', { name: 'dark' })).toBeChecked();
});

test('what was kept and makes no sense is as if nothing was', async ({ dashboard, page }) => {
  await page.addInitScript(() => localStorage.setItem('redrive.settings', '{"theme":"dark","letters":"nonsense","zone":7'));
  await dashboard.open('/settings');
  await background(page, LIGHT);
  await expect(page.getByRole('radio', { name: 'as the system has it' })).toBeChecked();
});
