// What WCAG 1.4.10 wants to be read without scrolling to the side: 320 pixels, which is a window of 1280 at 400 %.

import type { Page } from '@playwright/test';
import { expect } from './test';

/** Whether all of the page fits; tables scroll in boxes of their own. */
export async function fitsNarrow(page: Page): Promise<void> {
  await page.setViewportSize({ width: 320, height: 640 });
  const wide = () =>
    page.evaluate(() => {
      const out = [...document.querySelectorAll('main *')].filter((one) => one.getBoundingClientRect().right > 320 && one.closest('[role=region]') === null);
      return document.documentElement.scrollWidth <= 320 ? [] : out.map((one) => one.outerHTML.slice(0, 100)).slice(0, 5);
    });
  await expect.poll(wide).toEqual([]);
}
