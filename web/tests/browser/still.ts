// A page whose clock stands until the test lets time pass: what it counts down to does not depend on how long the machine takes.

import type { Page } from '@playwright/test';

/** Lets the page begin at this time and stand there. Called before it is opened. Where axe is to look at it, `page.clock.resume()` comes first. */
export async function standStill(page: Page, time = Date.now()): Promise<void> {
  // A clock runs until it is held, and can be held in what is to come only.
  await page.clock.install({ time });
  await page.clock.pauseAt(time + 60_000);
}
