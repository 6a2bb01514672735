// Dead letters: groups, what is in them, and the way back.

import { fitsNarrow } from './narrow';
import { type Json, type Server } from './server';
import { standStill } from './still';
import { expect, test } from './test';

/** So many messages in a queue that are dead of one error each. */
async function die(server: Server, queue: string, count: number, error: (at: number) => string, message: (at: number) => object = (at) => ({ body: `order ${at}` })) {
  await server.enqueueMany(queue, count, message);
  for (let left = count; left > 0; ) {
    const leased = await server.lease(queue, { limit: Math.min(left, 100) });
    await Promise.all(leased.map((one: Json, at: number) => server.post('/v1/leases/bury', { receipt: one.receipt, error: error(at) })));
    left -= leased.length;
  }
}

/** Two queues with dead messages in three groups. */
async function seed(server: Server): Promise<void> {
  await server.create('orders');
  await server.create('mail');
  await die(server, 'orders', 30, (at) => `connect to 10.0.0.${at}:5432: connection refused\n  at Pool.connect (pool.js:${at})`, (at) => ({
    body: `{"order":${at}}`, type: 'order.created', source: 'shop',
  }));
  await server.advance(60_000);
  await die(server, 'orders', 3, () => 'card declined', () => ({ body: 'x', type: 'order.paid', source: 'shop' }));
  await server.advance(60_000);
  await die(server, 'mail', 7, (at) => `smtp 550 no such mailbox "user${at}@example.com"`, () => ({ body: 'x', type: 'mail.welcome' }));
}

const states = async (server: Server, queue: string) => (await server.get(`/v1/queues/${queue}/stats`)).states;

test('groups of all queues are listed with exact counts, and each number leads to its list', async ({ server, dashboard, page }) => {
  await seed(server);
  await dashboard.open('/dead');
  const groups = page.getByRole('region', { name: 'Failure groups' });
  await expect(groups.locator('tr.item')).toHaveCount(3);
  await expect(groups.locator('tr.item').first()).toContainText('connection refused');
  const counts = groups.locator('tr.item td.number a');
  await expect(counts).toHaveText(['30', '7', '3']);
  await expect(counts.first()).toHaveAttribute('href', /\/messages\?queue=orders&state=dead&fingerprint=[0-9a-f]+$/);
  const totals = page.getByRole('navigation', { name: 'Dead messages by queue' });
  await expect(totals.getByRole('link')).toHaveText([/all queues\s*40/, /orders\s*33/, /mail\s*7/]);
  await dashboard.pictures('dead');
  await totals.getByRole('link', { name: /mail/ }).click();
  await expect(page).toHaveURL(/\/dead\?queue=mail$/);
  await expect(page.locator('tr.item')).toHaveCount(1);
});

test('a group that is opened shows its error whole and its newest messages; a reload shows the same', async ({ server, dashboard, page }) => {
  await seed(server);
  await dashboard.open('/dead');
  await page.locator('tr.item').first().getByRole('button', { name: /connection refused/ }).click();
  await expect(page).toHaveURL(/queue=orders&fingerprint=[0-9a-f]+/);
  const look = async () => {
    await expect(page.getByTestId('opened-count')).toHaveText('30 messages');
    await expect(page.getByRole('region', { name: 'The last error of the newest' })).toContainText('at Pool.connect (pool.js:');
    const newest = page.getByRole('region', { name: 'The newest 20' });
    await expect(newest.locator('tbody tr')).toHaveCount(20);
    await expect(newest.locator('tbody tr').first()).toContainText('order.created');
    await expect(newest.locator('tbody tr').first()).toContainText('buried');
    await expect(newest.locator('tbody a').first()).toHaveAttribute('href', /\/queues\/orders\/messages\/[0-9a-f-]{36}$/);
  };
  await look();
  await page.reload();
  await look();
  await dashboard.pictures('dead-group');
  await page.getByRole('button', { name: 'Close' }).first().click();
  await expect(page.getByTestId('opened-count')).toHaveCount(0);
});

test('what is narrowed down is in the address, and is what is counted', async ({ server, dashboard, page }) => {
  await seed(server);
  await dashboard.open('/dead?queue=orders');
  await page.getByText('Narrow it down').click();
  await page.getByLabel('Type', { exact: true }).fill('order.paid');
  await page.keyboard.press('Tab');
  await page.getByLabel('Reason').selectOption('buried');
  await expect(page).toHaveURL(/reason=buried/);
  await expect(page).toHaveURL(/type=order.paid/);
  await expect(page.getByTestId('opened-count')).toHaveText('3 messages');
  await page.reload();
  await expect(page.getByLabel('Type', { exact: true })).toHaveValue('order.paid');
  await expect(page.getByTestId('opened-count')).toHaveText('3 messages');
  await page.getByLabel('Text in the last error').fill('no such text');
  await page.getByLabel('Text in the last error').blur();
  await expect(page.getByTestId('opened-count')).toHaveText('0 messages');
});

test('the list is live: who dies appears', async ({ server, dashboard, page }) => {
  await server.create('orders');
  await dashboard.open('/dead');
  await expect(page.getByText('Nothing is dead here.')).toBeVisible();
  await die(server, 'orders', 2, () => 'card declined');
  await expect(page.locator('tr.item td.number a')).toHaveText(['2']);
  await server.advance(1_000);
  await die(server, 'orders', 1, () => 'card declined');
  await expect(page.locator('tr.item td.number a')).toHaveText(['3']);
});

test('the wizard brings back what it showed: filter, preview, rate and reason, start, progress', async ({ server, dashboard, page }) => {
  test.slow();
  await seed(server);
  const sent: Json[] = [];
  page.on('request', (request) => {
    if (request.url().endsWith('/dead/redrive')) sent.push(request.postDataJSON());
  });
  await dashboard.open('/dead?queue=orders');
  await page.getByRole('button', { name: 'Redrive…' }).click();
  const wizard = page.getByRole('dialog', { name: 'Redrive dead letters' });
  await wizard.getByLabel('Type', { exact: true }).fill('order.created');
  await wizard.getByLabel('Attempts, at least').fill('1');
  await dashboard.pictures('dead-wizard-filter');
  await wizard.getByRole('button', { name: 'Next' }).click();

  await expect(wizard.getByTestId('wizard-count')).toHaveText('30');
  await expect(wizard.getByTestId('wizard-filter')).toHaveText('type:order.created attempts>=1');
  sent.length = 0;
  await expect(wizard.locator('tbody tr')).toHaveCount(20);
  await dashboard.pictures('dead-wizard-preview');
  await page.reload();
  await expect(wizard.getByTestId('wizard-count')).toHaveText('30');
  await wizard.getByRole('button', { name: 'Next' }).click();

  await wizard.getByLabel('at most', { exact: true }).check();
  // The rate is one of this machine's time: half a minute is long enough to be seen at work.
  await wizard.getByLabel('Messages a second').fill('1');
  await expect(wizard.getByTestId('wizard-takes')).toHaveText('takes 30 s or more');
  await wizard.getByLabel('Reason').fill('the bank is back');
  await dashboard.pictures('dead-wizard-rate');
  await wizard.getByRole('button', { name: 'Next' }).click();

  await page.reload();
  await expect(wizard.getByText('Retry requested by the dashboard: the bank is back')).toBeVisible();
  await expect(wizard.getByTestId('wizard-count')).toHaveText('30');
  await expect(wizard.getByText('Attempts start at 0, redrives go up by one, the history is kept.')).toBeVisible();
  await dashboard.pictures('dead-wizard-start');
  await wizard.getByRole('button', { name: 'Redrive 30 messages' }).click();

  const operation = wizard.getByTestId('operation');
  await expect(operation).toHaveAttribute('data-state', 'running');
  await expect(page).toHaveURL(/redrive=progress/);
  await dashboard.pictures('dead-wizard-progress');
  await expect(operation).toHaveAttribute('data-state', 'done', { timeout: 120_000 });
  await expect(operation).toContainText('30 of 30');
  expect((await states(server, 'orders')).ready).toBe(30);
  expect((await states(server, 'orders')).dead).toBe(3);
  const [back] = (await server.get('/v1/queues/orders/messages?state=ready&limit=1')).messages;
  expect(back.note).toBe('Retry requested by the dashboard: the bank is back');
  expect([back.attempts, back.redrives]).toEqual([0, 1]);
  // What was counted, shown and started is one and the same filter.
  expect(sent.length).toBeGreaterThanOrEqual(3);
  for (const body of sent) expect(body.filter).toEqual({ types: ['order.created'], attempts_min: 1 });
  const started = sent.filter((body) => !body.dry_run);
  expect(started).toEqual([{ filter: { types: ['order.created'], attempts_min: 1 }, by: 'the dashboard', reason: 'the bank is back', rate: 1 }]);
  await operation.getByRole('link', { name: 'To the operation' }).click();
  await expect(page).toHaveURL(/\/operations\/[0-9a-f-]{36}$/);
});

test('where more are dead than were shown, nothing is started until somebody has seen it', async ({ server, dashboard, page }) => {
  await server.create('orders');
  await die(server, 'orders', 4, () => 'card declined');
  await dashboard.open('/dead?queue=orders&redrive=start');
  const wizard = page.getByRole('dialog');
  await expect(wizard.getByTestId('wizard-count')).toHaveText('4');
  await die(server, 'orders', 1, () => 'card declined');
  await wizard.getByRole('button', { name: 'Redrive 4 messages' }).click();
  await expect(wizard.getByRole('alert')).toContainText('It was 4 when it was shown, and is 5 now.');
  expect((await server.get('/v1/operations')).operations).toEqual([]);
  await expect(wizard.getByTestId('wizard-count')).toHaveText('5');
  await wizard.getByRole('button', { name: 'Redrive 5 messages' }).click();
  await expect(wizard.getByTestId('operation')).toHaveAttribute('data-state', 'done');
  expect((await states(server, 'orders')).ready).toBe(5);
});

test('a redrive is paused, goes on and is stopped, and what is ready stays ready', async ({ server, dashboard, page }) => {
  await server.create('orders');
  await die(server, 'orders', 50, () => 'card declined');
  await dashboard.open('/dead?queue=orders&redrive=start&rate=1');
  const wizard = page.getByRole('dialog');
  await wizard.getByRole('button', { name: 'Redrive 50 messages' }).click();
  const operation = wizard.getByTestId('operation');
  await expect(operation).toHaveAttribute('data-state', 'running');
  await operation.getByRole('button', { name: 'Pause' }).click();
  await expect(operation).toHaveAttribute('data-state', 'paused');
  await page.reload();
  await expect(operation).toHaveAttribute('data-state', 'paused');
  await operation.getByRole('button', { name: 'Go on' }).click();
  await expect(operation).toHaveAttribute('data-state', 'running');
  await expect(async () => {
    await server.advance(1_000);
    expect((await states(server, 'orders')).ready).toBeGreaterThan(1);
  }).toPass();
  await operation.getByRole('button', { name: 'Stop…' }).click();
  const question = page.getByRole('dialog', { name: 'Cancel this operation?' });
  await expect(question).toContainText('that it has changed stay changed');
  await question.getByRole('button', { name: 'Cancel', exact: true }).click();
  await expect(question).toHaveCount(0);
  await expect(operation).toHaveAttribute('data-state', 'running');
  await operation.getByRole('button', { name: 'Stop…' }).click();
  await question.getByRole('button', { name: 'Cancel the operation' }).click();
  await expect(operation).toHaveAttribute('data-state', 'cancelled');
  await expect(operation).toContainText('stopped');
  const left = await states(server, 'orders');
  expect(left.ready + left.dead).toBe(50);
  expect(left.dead).toBeGreaterThan(0);
});

test('on a page that stands still, so does the progress of a redrive, until somebody asks', async ({ server, dashboard, page }) => {
  await server.create('orders');
  await die(server, 'orders', 3, () => 'card declined');
  const asked: string[] = [];
  page.on('request', (request) => {
    if (request.method() === 'GET' && request.url().includes('/v1/operations/')) asked.push(request.url());
  });
  await standStill(page);
  await dashboard.open('/dead?queue=orders');
  await expect(page.locator('button.live')).toHaveAttribute('data-state', 'live');
  await page.clock.runFor(2_000);
  await page.keyboard.press('l');
  await expect(page.locator('button.live')).toHaveAttribute('data-state', 'paused');
  const { id } = await server.post('/v1/queues/orders/dead/redrive', { filter: {}, rate: 1 });
  await server.post(`/v1/operations/${id}/pause`);
  // As a link would, without loading anything anew.
  await page.evaluate((path) => {
    history.pushState(null, '', path);
    dispatchEvent(new PopStateEvent('popstate'));
  }, `/dead?queue=orders&redrive=progress&operation=${id}`);
  const operation = page.getByTestId('operation');
  await expect(operation).toHaveAttribute('data-state', 'paused');
  expect(asked).toHaveLength(1);
  await page.clock.runFor(30_000);
  expect(asked).toHaveLength(1);
  await operation.getByRole('button', { name: 'Go on' }).click();
  await expect(operation).toHaveAttribute('data-state', /running|done/);
  expect(asked).toHaveLength(2);
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toHaveCount(0);
});

test('one group is redriven from its row', async ({ server, dashboard, page }) => {
  await seed(server);
  await dashboard.open('/dead');
  await page.locator('tr.item').filter({ hasText: 'card declined' }).getByRole('button', { name: 'Redrive' }).click();
  const wizard = page.getByRole('dialog');
  await expect(wizard.getByTestId('wizard-count')).toHaveText('3');
  await expect(wizard.getByTestId('wizard-filter')).toHaveText(/^fingerprint:[0-9a-f]+$/);
  await wizard.getByRole('button', { name: 'Next' }).click();
  await wizard.getByRole('button', { name: 'Next' }).click();
  await wizard.getByRole('button', { name: 'Redrive 3 messages' }).click();
  await expect(wizard.getByTestId('operation')).toHaveAttribute('data-state', 'done');
  expect(await states(server, 'orders')).toMatchObject({ ready: 3, dead: 30 });
});

test('a few are discarded after a question, many after the name of the queue is typed', async ({ server, dashboard, page }) => {
  await server.create('orders');
  await die(server, 'orders', 120, (at) => (at % 40 === 0 ? 'card declined' : 'connection refused'));
  await dashboard.open('/dead');
  await page.locator('tr.item').filter({ hasText: 'card declined' }).getByRole('button', { name: 'Discard' }).click();
  const question = page.getByRole('dialog', { name: 'Discard dead messages of orders' });
  await expect(question.getByTestId('confirm-count')).toHaveText('4');
  await expect(question.getByTestId('confirm-filter')).toHaveText(/^queue:orders state:dead fingerprint:[0-9a-f]+$/);
  await expect(question.getByRole('textbox')).toHaveCount(0);
  await question.getByRole('button', { name: 'Discard' }).click();
  await expect(page.getByText('Discarding 4 messages.')).toBeVisible();
  await expect.poll(async () => (await states(server, 'orders')).dead).toBe(116);

  await page.goto(`${server.origin}/dead?queue=orders`);
  await page.getByRole('button', { name: 'Discard…' }).click();
  await expect(question.getByTestId('confirm-count')).toHaveText('116');
  const button = question.getByRole('button', { name: 'Discard' });
  await expect(button).toBeDisabled();
  // One more dies meanwhile: what was typed was typed for another number.
  await die(server, 'orders', 1, () => 'card declined');
  await question.getByRole('textbox').fill('orders');
  await button.click();
  await expect(question).toContainText('It was 116 when it was shown, and is 117 now.');
  await expect(question.getByTestId('confirm-count')).toHaveText('117');
  expect((await states(server, 'orders')).dead).toBe(117);
  await question.getByRole('textbox').fill('orders');
  await button.click();
  await expect.poll(async () => (await states(server, 'orders')).dead).toBe(0);
  await expect(page.getByText('Nothing is dead here.')).toBeVisible();
});

test('the keyboard opens a group, redrives and discards', async ({ server, dashboard, page }) => {
  await seed(server);
  await dashboard.open('/dead');
  await expect(page.locator('tr.item')).toHaveCount(3);
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await expect(page.locator('tr.item[data-index="1"]')).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/queue=mail&fingerprint=/);
  await expect(page.getByRole('heading', { name: 'One failure group' })).toBeFocused();
  await page.keyboard.press('r');
  await expect(page.getByRole('dialog', { name: 'Redrive dead letters' }).getByTestId('wizard-count')).toHaveText('7');
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await page.keyboard.press('d');
  await expect(page.getByTestId('confirm-count')).toHaveText('7');
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await page.keyboard.press('/');
  await expect(page.getByRole('combobox', { name: 'Queue' })).toBeFocused();
});

test('a group and every step of the wizard fit the smallest screen', async ({ server, dashboard, page }) => {
  await seed(server);
  const { groups } = await server.get('/v1/queues/orders/dead/groups');
  for (const step of ['', '&redrive=filter', '&redrive=preview', '&redrive=rate&rate=5', '&redrive=start']) {
    await dashboard.open(`/dead?queue=orders&fingerprint=${groups[0].fingerprint}${step}`);
    await expect(page.getByTestId('opened-count')).toHaveText('30 messages');
    if (step !== '') await expect(page.getByRole('dialog')).toBeVisible();
    await fitsNarrow(page);
    const dialog = page.locator('dialog');
    if (step !== '') expect(await dialog.evaluate((one) => one.scrollWidth - one.clientWidth)).toBeLessThanOrEqual(0);
  }
  await dashboard.accessible('the wizard at 400 %');
});

test.describe('with keys', () => {
  test.use({ wanted: { keyed: true } });

  test('who may only read sees groups and messages, and no button that would fail', async ({ server, dashboard, page }) => {
    await seed(server);
    await dashboard.open('/dead');
    await dashboard.signIn(await server.key('watcher', ['read', '*']));
    await expect(page.locator('tr.item')).toHaveCount(3);
    await page.locator('tr.item').first().getByRole('button', { name: /connection refused/ }).click();
    await expect(page.getByTestId('opened-count')).toHaveText('30 messages');
    await expect(page.getByRole('region', { name: 'The newest 20' }).locator('tbody tr')).toHaveCount(20);
    await expect(page.getByRole('button', { name: /Redrive|Discard/ })).toHaveCount(0);
  });

  test('who asked is the name of the key', async ({ server, dashboard, page }) => {
    await seed(server);
    await dashboard.open('/dead?queue=mail&redrive=start&why=mailbox%20is%20back');
    await dashboard.signIn(await server.key('ann', ['manage', 'mail']));
    await page.getByRole('dialog').getByRole('button', { name: 'Redrive 7 messages' }).click();
    await expect(page.getByTestId('operation')).toHaveAttribute('data-state', 'done');
    const [back] = (await server.get('/v1/queues/mail/messages?state=ready&limit=1')).messages;
    expect(back.note).toBe('Retry requested by ann: mailbox is back');
  });
});
