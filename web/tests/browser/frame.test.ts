// The frame: what is around every page.

import { expect, test } from './test';

test('the page opens, is live, and breaks nothing', async ({ dashboard, page }) => {
  await dashboard.open();
  await expect(page.getByRole('button', { name: 'Live' })).toHaveAttribute('data-state', 'live');
  await expect(page.getByText('no key needed')).toBeVisible();
});

test('the link past the rail leads to the page that is shown', async ({ dashboard, page }) => {
  await dashboard.open('/settings');
  await page.keyboard.press('Tab');
  const skip = page.getByRole('link', { name: 'Skip to the page' });
  await expect(skip).toBeFocused();
  await expect(skip).toBeInViewport();
  await page.keyboard.press('Enter');
  await expect(page.locator('main')).toBeFocused();
  await expect(page).toHaveURL(/\/settings$/);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Settings');
  // From there on the page is next, and not the rail.
  await page.keyboard.press('Tab');
  await expect(page.locator('main :focus')).toBeVisible();
});

test('every page of the rail opens, says where it is, and its name has the focus', async ({ dashboard, page }) => {
  await dashboard.open();
  const rail = page.getByRole('navigation', { name: 'Pages' });
  for (const name of ['Queues', 'Messages', 'Leases', 'Dead letters', 'Operations', 'Subscriptions', 'Consumers', 'Events', 'Access and audit', 'Settings', 'Overview']) {
    await rail.getByRole('link', { name, exact: true }).click();
    await expect(page.getByRole('heading', { level: 1 })).toHaveText(name);
    await expect(rail.locator('[aria-current="page"]')).toHaveText(name);
    await expect(page).toHaveTitle(`${name} · Redrive`);
    await expect(page.getByRole('heading', { level: 1 })).toBeFocused();
  }
  await page.goBack();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Settings');
});

test('the rail can be narrow, keeps its names, and stays so', async ({ dashboard, page }) => {
  await dashboard.open();
  await page.getByRole('button', { name: 'Hide the words of the rail' }).click();
  const link = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Leases' });
  await expect(link).toBeVisible();
  expect((await page.getByRole('navigation', { name: 'Pages' }).boundingBox())?.width).toBeLessThan(80);
  await page.reload();
  await expect(page.getByRole('button', { name: 'Show the words of the rail' })).toBeVisible();
  await link.click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Leases');
});

test('an address that leads nowhere says so, and leads home', async ({ dashboard, page }) => {
  await dashboard.open('/nothing/here');
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('There is nothing here');
  await dashboard.accessible('nowhere');
  await page.getByRole('link', { name: 'Go to the overview' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Overview');
});

const PATHS = ['/', '/queues', '/messages', '/leases', '/dead', '/operations', '/subscriptions', '/consumers', '/events', '/access', '/settings'];

// 320 px is a window of 1280 px at 400 %: what WCAG 1.4.10 wants to be read without scrolling to the side.
for (const [name, viewport] of [['a phone', { width: 390, height: 844 }], ['400 % zoom', { width: 320, height: 256 }]] as const) {
  test.describe(name, () => {
    test.use({ viewport });

    test(`no page scrolls to the side on ${name}`, async ({ dashboard, page, server }) => {
      await server.create('orders-with-a-name-that-is-rather-long-for-a-small-screen');
      await server.enqueue('orders-with-a-name-that-is-rather-long-for-a-small-screen');
      await server.lease('orders-with-a-name-that-is-rather-long-for-a-small-screen', { consumer: 'worker-with-a-long-name-too' });
      for (const path of PATHS) {
        await dashboard.open(path);
        await expect(page.getByRole('button', { name: 'Live' })).toHaveAttribute('data-state', 'live');
        const wide = await page.evaluate(() => {
          const { scrollWidth, clientWidth } = document.documentElement;
          if (scrollWidth <= clientWidth) return [];
          const over = [...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > clientWidth + 1 && !one.closest('.box'));
          return over.slice(0, 5).map((one) => one.outerHTML.slice(0, 120));
        });
        expect.soft(wide, `${path} on ${name}`).toEqual([]);
      }
    });
  });
}

test('with the colours of the system everything is still there', async ({ dashboard, page, server }) => {
  await server.create('orders', { lease_timeout_ms: 30_000 });
  await server.enqueue('orders');
  await server.lease('orders', { consumer: 'worker-1' });
  await page.emulateMedia({ forcedColors: 'active' });
  await dashboard.open('/leases');
  await expect(page.locator('tr.item')).toHaveCount(1);
  const button = page.getByRole('button', { name: /Extend the lease/ });
  await expect(button).toBeVisible();
  await expect(button).toHaveCSS('border-top-style', 'solid');
  await page.screenshot({ path: 'screenshots/forced-colors.png' });
});

test('who wants nothing to move gets no animation and no transition', async ({ dashboard, page }) => {
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await dashboard.open('/leases');
  const moving = await page.evaluate(() =>
    [...document.querySelectorAll('*')].filter((one) => {
      const style = getComputedStyle(one);
      return style.animationName !== 'none' || style.transitionDuration.split(', ').some((time) => time !== '0s');
    }).length,
  );
  expect(moving).toBe(0);
});

test('the first load is at most 150 kB, compressed', async ({ dashboard, page }) => {
  await dashboard.open();
  const bytes = await page.evaluate(() => {
    const loaded = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')] as PerformanceResourceTiming[];
    const files = loaded.filter((one) => !new URL(one.name).pathname.startsWith('/v1/'));
    return files.reduce((sum, one) => sum + one.encodedBodySize, 0);
  });
  expect(bytes).toBeGreaterThan(10_000);
  expect(bytes).toBeLessThanOrEqual(150_000);
  console.log(`the first load is ${bytes} bytes`);
});
