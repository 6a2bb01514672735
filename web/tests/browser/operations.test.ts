// Operations: how far work on many messages is, and stopping it.

import type { Page } from '@playwright/test';
import type { Json, Server } from './server';
import { expect, test } from './test';

/** A queue with many ready messages, and an operation that moves them slowly enough to be watched. */
async function moving(server: Server, queue: string, count: number, rate?: number): Promise<Json> {
  await server.create(queue);
  await server.enqueueMany(queue, count, () => ({ body: 'x' }));
  return server.post(`/v1/queues/${queue}/messages/move`, { filter: {}, queue: 'archive', ...(rate ? { rate } : {}) });
}

const rows = (page: Page) => page.locator('tr.item');
const get = (server: Server, id: string): Promise<Json> => server.get(`/v1/operations/${id}`);

test('the newest are first, each with its numbers, and a filter that is in the address', async ({ server, dashboard, page }) => {
  await server.create('archive');
  await server.create('orders');
  await server.die('orders', 'boom');
  const redrive = await server.post('/v1/queues/orders/dead/redrive', { filter: {}, by: 'ann', reason: 'fixed in 1.2 <b>' });
  await expect.poll(async () => (await get(server, redrive.id)).state).toBe('done');
  await server.advance(60_000);
  const move = await moving(server, 'mail', 500, 1);
  await dashboard.open('/operations');
  await expect(rows(page)).toHaveCount(2);
  await expect(rows(page).first()).toHaveAttribute('data-key', move.id);
  await expect(rows(page).first()).toContainText('running');
  await expect(rows(page).first()).toContainText('mail → archive');
  await expect(rows(page).first()).toContainText(/\d+ \/ 500/);
  await expect(rows(page).first()).toContainText('≤ 1/s');
  await expect(rows(page).first().getByRole('progressbar')).toHaveAttribute('max', '500');
  await expect(rows(page).last()).toContainText('done');
  await expect(rows(page).last()).toContainText('1 / 1');
  await expect(rows(page).last()).toContainText('ann');
  await expect(rows(page).last()).toContainText('fixed in 1.2 <b>');
  await expect(rows(page).first()).toContainText('everything');
  await expect(rows(page).last()).toContainText('state:dead');
  await expect(page.getByText('2 operations shown, 1 under way')).toBeVisible();
  await dashboard.pictures('operations');

  await page.getByLabel('State').selectOption('done');
  await expect(page).toHaveURL(/state=done/);
  await expect(rows(page)).toHaveCount(1);
  await page.reload();
  await expect(rows(page)).toHaveCount(1);
  await page.getByLabel('State').selectOption('');
  await page.keyboard.press('Escape');
  await page.getByLabel('Queue').fill('MAI');
  await expect(rows(page)).toHaveCount(1);
  await expect(page).toHaveURL(/queue=MAI/);
  await page.getByLabel('Queue').fill('nothing');
  await expect(page.getByText('No operation matches.')).toBeVisible();
});

test('an operation is paused, goes on and is cancelled, from the list and from its page', async ({ server, dashboard, page }) => {
  await server.create('archive');
  const { id } = await moving(server, 'orders', 500, 1);
  await dashboard.open('/operations');
  await rows(page).first().getByRole('button', { name: 'Pause' }).click();
  await expect.poll(async () => (await get(server, id)).state).toBe('paused');
  await expect(rows(page).first().locator('[data-state="paused"]')).toBeVisible();
  await rows(page).first().getByRole('link', { name: 'Move' }).click();
  await expect(page).toHaveURL(new RegExp(`/operations/${id}$`));
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Move of orders');
  await expect(page.getByText(/It is paused. \d+ changed so far/)).toBeVisible();
  await page.getByRole('button', { name: 'Resume' }).click();
  await expect.poll(async () => (await get(server, id)).state).toBe('running');
  await expect(page.getByText('It goes on.').first()).toBeVisible();
  await dashboard.pictures('operation');
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await expect(page.getByText('It ends after the step it is at. The')).toBeVisible();
  await dashboard.accessible('cancelling');
  await page.getByRole('button', { name: 'Cancel the operation' }).click();
  await expect.poll(async () => (await get(server, id)).state).toBe('cancelled');
  await expect(page.getByText(/It was cancelled. \d+ were changed before/)).toBeVisible();
  await expect(page.getByRole('button', { name: 'Pause' })).toHaveCount(0);
});

test('an operation says which messages it is about, word for word, and up to which', async ({ server, dashboard, page }) => {
  await server.create('orders');
  const ids = [await server.die('orders', 'boom \u202e'), await server.die('orders', 'bang'), await server.die('orders', 'boom \u202e again')];
  const filter = { reasons: ['buried'], attempts_min: 1, created_before: '2099-01-01T00:00:00.000Z', error: 'boom \u202e' };
  const { id } = await server.post('/v1/queues/orders/dead/redrive', { filter });
  const words = 'state:dead reason:buried attempts>=1 created<=2099-01-01T00:00:00.000Z error:"boom ⟨U+202E⟩"';
  await dashboard.open(`/operations/${id}`);
  await expect(page.getByTestId('filter')).toHaveText(words);
  await expect(page.getByTestId('until').getByRole('link')).toHaveText(ids[2] ?? '');
  await page.getByRole('link', { name: 'All operations' }).click();
  await expect(rows(page).first().locator(`td[title='${words}']`)).toBeVisible();
  // Where nothing matched, there is no last message.
  const nothing = await server.post('/v1/queues/orders/dead/redrive', { filter: { types: ['nothing'] } });
  await dashboard.open(`/operations/${nothing.id}`);
  await expect(page.getByTestId('filter')).toHaveText('state:dead type:nothing');
  await expect(page.getByTestId('until')).toHaveCount(0);
});

test('progress is shown as it goes, without asking', async ({ server, dashboard, page }) => {
  await server.create('archive');
  const { id } = await moving(server, 'orders', 1_200, 300);
  await dashboard.open(`/operations/${id}`);
  await expect(page.getByRole('progressbar')).toHaveAttribute('max', '1200');
  await expect(page.getByTestId('applied')).toHaveText('1,200');
  await expect(page.getByText('It is done. 1,200 changed, 0 left as they were.')).toBeVisible();
  await expect(page.getByRole('link', { name: 'archive', exact: true })).toHaveAttribute('href', '/queues/archive');
});

test('hostile names and reasons are text', async ({ server, dashboard, page }) => {
  await server.create('orders');
  await server.die('orders', 'boom');
  const { id } = await server.post('/v1/queues/orders/dead/redrive', { filter: {}, by: '<script>alert(1)</script>', reason: 'line one\n\u202e<img src=x onerror=alert(1)>' });
  await dashboard.open(`/operations/${id}`);
  await expect(page.getByText('<script>alert(1)</script>')).toBeVisible();
  await expect(page.getByText('⟨U+202E⟩<img src=x onerror=alert(1)>')).toBeVisible();
  await page.getByRole('link', { name: 'All operations' }).click();
  await expect(rows(page).first()).toContainText('<script>alert(1)</script>');
});

test('where nothing was done yet, it says where to begin', async ({ dashboard, page }) => {
  await dashboard.open('/operations');
  await expect(page.getByText('Nothing was redriven, discarded or moved yet.')).toBeVisible();
  await expect(page.locator('main').getByRole('link', { name: 'Dead letters' })).toHaveAttribute('href', '/dead');
  await dashboard.accessible('no operations');
});

test('an operation that is not there is an error that says so', async ({ dashboard, page }) => {
  dashboard.allow(/status of 404/);
  await dashboard.open('/operations/0198c1de-0000-7000-8000-000000000001');
  await expect(page.getByRole('alert')).toContainText('OPERATION_NOT_FOUND');
});

test.describe('with a key that may only read', () => {
  test.use({ wanted: { keyed: true } });

  test('there is progress, and no button', async ({ server, dashboard, page }) => {
    dashboard.allow(/status of 401/);
    await server.create('archive');
    const { id } = await moving(server, 'orders', 500, 1);
    const token = await server.key('reader', ['read', '*']);
    await dashboard.open('/operations');
    await dashboard.signIn(token);
    await expect(rows(page).first()).toContainText('running');
    await expect(page.getByRole('button', { name: 'Pause' })).toHaveCount(0);
    await page.locator(`a[href="/operations/${id}"]`).click();
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Move of orders');
    await expect(page.getByRole('button', { name: 'Cancel' })).toHaveCount(0);
  });
});
