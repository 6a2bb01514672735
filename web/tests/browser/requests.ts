// When a page has what it asked for.

import type { Page } from '@playwright/test';
import { expect } from './test';

/** Counts requests that are under way, and waits until there are none. The stream of events always is. */
export function watchRequests(page: Page): () => Promise<void> {
  let open = 0;
  const counts = (request: { url: () => string }) => !request.url().endsWith('/v1/events');
  page.on('request', (request) => (open += counts(request) ? 1 : 0));
  page.on('requestfinished', (request) => (open -= counts(request) ? 1 : 0));
  page.on('requestfailed', (request) => (open -= counts(request) ? 1 : 0));
  return async () => {
    // A frame, so that what was asked for by what came is asked for.
    await expect.poll(async () => (await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => done(1)))), open)).toBe(0);
  };
}

