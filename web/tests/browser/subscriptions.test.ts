// Subscriptions and their endpoints, against a receiver on this machine.

import { fitsNarrow } from './narrow';
import { Receiver } from './receiver';
import type { Json, Server } from './server';
import { standStill } from './still';
import { expect, test } from './test';

test.use({ wanted: { flags: ['--webhook-allow', '127.0.0.1:*'] } });

let receiver: Receiver;
test.beforeEach(async () => {
  receiver = await Receiver.start();
});
test.afterEach(() => receiver.end());

async function subscribe(server: Server, id: string, more: object = {}): Promise<void> {
  await server.post('/v1/subscriptions', { id, pattern: 'orders.*', target: { kind: 'webhook', url: receiver.url }, retry: { jitter: 'none' }, ...more });
}

async function publish(server: Server, topic: string, ...bodies: string[]): Promise<string[]> {
  const { results } = await server.post(`/v1/topics/${topic}/events`, { events: bodies.map((body) => ({ body })) });
  return results.map((result: Json) => result.id);
}

const view = (server: Server, id: string) => server.get(`/v1/subscriptions/${id}`);
const attempts = async (server: Server, id: string): Promise<Json[]> => (await server.get(`/v1/subscriptions/${id}/attempts`)).attempts;

test('all of them are listed, with state, breaker and what waits; the filter is in the address', async ({ server, dashboard, page }) => {
  await server.create('audit');
  await subscribe(server, 'shop');
  await subscribe(server, 'billing', { pattern: 'payments.**' });
  await subscribe(server, 'search');
  await server.post('/v1/subscriptions', { id: 'auditor', pattern: '*', target: { kind: 'queue', queue: 'audit' } });
  await server.post('/v1/subscriptions/billing/pause');
  await publish(server, 'payments.failed', 'one', 'two');
  await server.post('/v1/subscriptions/search/disable');
  await server.post('/v1/subscriptions/shop/breaker/trip');
  await dashboard.open('/subscriptions');
  const row = (id: string) => page.locator(`tr[data-key="${id}"]`);
  await expect(page.locator('tr.item')).toHaveCount(4);
  await expect(row('shop')).toContainText('active');
  await expect(row('shop')).toContainText(/open\s*·\s*probe in\s*\d+ s/);
  await expect(row('shop')).toContainText(receiver.url);
  await expect(row('billing')).toContainText('paused');
  await expect(row('billing').locator('td.number').first()).toHaveText('2');
  await expect(row('search')).toContainText('disabled');
  await expect(row('auditor').getByRole('link', { name: 'audit', exact: true })).toHaveAttribute('href', '/queues/audit');
  await dashboard.pictures('subscriptions');

  await page.getByLabel('Id, pattern or target').fill('payments');
  await expect(page.locator('tr.item')).toHaveCount(1);
  await expect(page).toHaveURL(/text=payments/);
  await page.reload();
  await expect(page.getByLabel('Id, pattern or target')).toHaveValue('payments');
  await expect(page.locator('tr.item')).toHaveCount(1);
  await page.getByRole('combobox', { name: 'State' }).selectOption('disabled');
  await expect(page.getByText('No subscription matches.')).toBeVisible();
  await page.getByLabel('Id, pattern or target').fill('');
  await expect(row('search')).toBeVisible();
  await page.getByRole('combobox', { name: 'State' }).selectOption('');
  await page.getByRole('combobox', { name: 'Target' }).selectOption('queue');
  await expect(row('auditor')).toBeVisible();
  await expect(page.locator('tr.item')).toHaveCount(1);
  await page.keyboard.press('Escape');
  await row('auditor').click();
  await expect(page).toHaveURL(/\/subscriptions\/auditor$/);
});

test('where there are none, the page says how to make one', async ({ dashboard, page }) => {
  await dashboard.open('/subscriptions');
  await expect(page.getByText('There are no subscriptions.')).toBeVisible();
  await expect(page.getByText('redrive subscription create shop')).toBeVisible();
});

test('a webhook is created, and its secret is shown once', async ({ server, dashboard, page }) => {
  await dashboard.open('/subscriptions');
  await page.getByRole('button', { name: 'Create…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Id').fill('shop');
  await dialog.getByLabel('Topics').fill('orders.**');
  await dialog.getByLabel('Address of the endpoint').fill(receiver.url);
  await dialog.getByLabel('Only with these headers').fill('tier=gold\ntier=silver\nregion=eu');
  await dialog.getByText('Retries, timeout, breaker').click();
  await dialog.getByLabel('Attempts, at most').fill('5');
  await dialog.getByLabel('First delay').fill('soon');
  await dialog.getByLabel('Timeout of an attempt').fill('10s');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await expect(dialog.getByLabel('First delay')).toHaveAttribute('aria-invalid', 'true');
  await dialog.getByLabel('First delay').fill('2s');
  await dashboard.pictures('subscription-create');
  await dialog.getByRole('button', { name: 'Create' }).click();
  const secret = await dialog.getByTestId('secret').inputValue();
  expect(secret).toMatch(/^whsec_/);
  await expect(dialog).toContainText('This is shown once');
  await dashboard.pictures('subscription-secret');
  await dialog.getByRole('button', { name: 'I have kept it' }).click();
  await expect(page.getByRole('dialog')).toHaveCount(0);
  expect(await page.content()).not.toContain(secret);
  await expect(page.locator('tr[data-key="shop"]')).toBeVisible();
  const made = await view(server, 'shop');
  expect(made).toMatchObject({ pattern: 'orders.**', filter: { tier: ['gold', 'silver'], region: ['eu'] }, timeout_ms: 10_000, retry: { max_attempts: 5, base_delay_ms: 2_000 } });
});

test('what the server refuses is told in its words, and what was typed stays', async ({ server, dashboard, page }) => {
  dashboard.allow(/status of 4\d\d/);
  await server.create('mail');
  await dashboard.open('/subscriptions');
  await page.getByRole('button', { name: 'Create…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('queue').check();
  await dialog.getByLabel('Queue that gets the events').fill('nowhere');
  await dialog.getByLabel('Topics').fill('orders.*');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await expect(dialog.getByRole('alert')).toBeVisible();
  await expect(dialog.getByLabel('Topics')).toHaveValue('orders.*');
  await dialog.getByLabel('Queue that gets the events').fill('mail');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await expect(page.locator('tr.item')).toHaveCount(1);
});

test('deliveries are listed with what was sent and answered, as text', async ({ server, dashboard, page }) => {
  await subscribe(server, 'shop');
  receiver.answer = { status: 503, headers: { 'content-type': 'text/html', 'x-powered-by': 'Café' }, body: '<h1>down</h1>' };
  const [event] = await publish(server, 'orders.created', '{"order": 7}');
  await dashboard.open('/subscriptions/shop');
  const list = page.getByRole('region', { name: 'Last deliveries' });
  await expect(list.locator('tbody tr').first()).toContainText('failed');
  await expect(list.locator('tbody tr').first()).toContainText('503');
  receiver.answer = { status: 200 };
  await server.advance(5_000);
  await expect(list.locator('tbody tr')).toHaveCount(2);
  await expect(list.locator('tbody tr').first()).toContainText('delivered');
  await list.locator('tbody tr').nth(1).getByRole('button', { name: 'Request and response' }).click();
  const response = page.getByRole('region', { name: 'Body of the response' });
  await expect(response).toHaveText('<h1>down</h1>');
  await expect(page.getByRole('region', { name: 'Body of the request' })).toContainText('order');
  await expect(page.getByRole('table', { name: 'Headers of the request' })).toContainText('webhook-id');
  await expect(page.getByRole('table', { name: 'Headers of the request' })).toContainText(event ?? '');
  await expect(page.getByRole('table', { name: 'Headers of the request' })).not.toContainText('webhook-signature');
  await dashboard.pictures('subscription');
});

test('an event is sent once more, and the page says what that came to', async ({ server, dashboard, page }) => {
  dashboard.allow(/status of 404/);
  await server.call('PUT', '/v1/topics/orders.*', { retain_ms: 3_600_000 });
  await subscribe(server, 'shop', { retry: { jitter: 'none', max_attempts: 2 } });
  receiver.answer = { status: 500 };
  const [event = ''] = await publish(server, 'orders.created', '{"order": 7}');
  await dashboard.open('/subscriptions/shop');
  const list = page.getByRole('region', { name: 'Last deliveries' });
  const again = async (said: string) => {
    await list.locator('tbody tr').first().getByRole('button', { name: 'Resend…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Resend' }).click();
    await expect(page.getByText(said)).toBeVisible();
  };
  await expect(list.locator('tbody tr')).toHaveCount(1);
  await again('It was waiting for its retry, which comes now.');
  await expect(list.locator('tbody tr')).toHaveCount(2);
  await expect.poll(async () => (await server.get('/v1/queues/bus.sub.shop/stats')).states.dead).toBe(1);
  receiver.answer = { status: 200 };
  await again('It was dead, and is brought back.');
  await expect(list.locator('tbody tr').first()).toContainText('delivered');
  await expect.poll(async () => (await server.get('/v1/queues/bus.sub.shop/stats')).states.ready).toBe(0);
  await again('It was delivered before, and is sent again.');
  await expect(list.locator('tbody tr')).toHaveCount(4);
  expect(receiver.received.map(({ headers }) => headers['webhook-id'])).toEqual([event, event, event, event]);

  await page.getByLabel('Event', { exact: true }).fill('01a1ebae-0000-7000-8000-000000000000');
  await page.getByRole('button', { name: 'Resend…' }).first().click();
  await page.getByRole('dialog').getByRole('button', { name: 'Resend' }).click();
  await expect(page.getByRole('dialog').getByRole('alert')).toBeVisible();
});

test('it is paused and goes on, is disabled and enabled', async ({ server, dashboard, page }) => {
  await subscribe(server, 'shop');
  await dashboard.open('/subscriptions/shop');
  const facts = page.getByRole('region', { name: 'What it is' });
  await page.getByRole('button', { name: 'Pause' }).click();
  await expect(facts).toContainText('paused');
  expect((await view(server, 'shop')).state).toBe('paused');
  await publish(server, 'orders.created', 'x');
  await expect(facts.getByRole('link', { name: '1 ready' })).toBeVisible();
  await page.getByRole('button', { name: 'Go on' }).click();
  await expect(facts).toContainText('active');
  await expect(facts.getByRole('link', { name: '0 ready' })).toBeVisible();
  await page.getByRole('button', { name: 'Disable…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
  await expect(facts).toContainText('a person switched it off');
  await page.getByRole('button', { name: 'Enable' }).click();
  await expect(facts).toContainText('active');
});

test('an endpoint that is gone says why it is off', async ({ server, dashboard, page }) => {
  await subscribe(server, 'shop');
  receiver.answer = { status: 410 };
  await publish(server, 'orders.created', 'x');
  await dashboard.open('/subscriptions/shop');
  await expect(page.getByRole('region', { name: 'What it is' })).toContainText('its endpoint answered 410, gone');
});

test('the breaker counts down to its probe, and is tripped and reset', async ({ server, dashboard, page }) => {
  await subscribe(server, 'shop');
  await dashboard.open('/subscriptions/shop');
  const breaker = page.getByTestId('breaker');
  await expect(breaker).toHaveText('closed');
  await page.getByRole('button', { name: 'Trip…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Trip' }).click();
  await expect(breaker).toContainText(/open\s*·\s*probe in\s*(\d+) s/);
  const left = async () => Number(/probe in\s*(\d+) s/.exec((await breaker.textContent()) ?? '')?.[1]);
  const first = await left();
  expect(first).toBeLessThanOrEqual(30);
  await expect.poll(left).toBeLessThan(first);
  await page.getByRole('button', { name: 'Reset' }).click();
  await expect(breaker).toHaveText('closed');
});

test('it is edited; who edits what somebody else changed meanwhile is refused', async ({ server, dashboard, page }) => {
  dashboard.allow(/status of 412|status of 409/);
  await subscribe(server, 'shop', { timeout_ms: 5_000, breaker: null, filter: { tier: ['gold'] } });
  await dashboard.open('/subscriptions/shop');
  const settings = page.getByRole('table', { name: 'Settings in force' });
  await expect(settings.getByRole('row', { name: /Timeout of an attempt/ })).toContainText('set here');
  await expect(settings.getByRole('row', { name: /First delay/ })).toContainText('the server');
  await page.getByRole('button', { name: 'Edit…' }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByLabel('Topics')).toHaveValue('orders.*');
  await expect(dialog.getByLabel('Only with these headers')).toHaveValue('tier=gold');
  await dialog.getByText('Retries, timeout, breaker').click();
  await expect(dialog.getByLabel('Timeout of an attempt')).toHaveValue('5s');
  await expect(dialog.getByRole('combobox', { name: 'Breaker' })).toHaveValue('off');
  await dialog.getByLabel('Timeout of an attempt').fill('7s');
  await dashboard.pictures('subscription-edit');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(settings.getByRole('row', { name: /Timeout of an attempt/ })).toContainText('7 s');
  expect(await view(server, 'shop')).toMatchObject({ timeout_ms: 7_000, breaker: null, filter: { tier: ['gold'] }, retry: { jitter: 'none' }, target: { url: receiver.url } });

  await page.getByRole('button', { name: 'Edit…' }).click();
  await dialog.getByLabel('Topics').fill('mine.*');
  await server.call('PUT', '/v1/subscriptions/shop', { pattern: 'theirs.*' });
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(dialog.getByRole('alert')).toBeVisible();
  expect((await view(server, 'shop')).pattern).toBe('theirs.*');
});

test('its secret is changed, and the new one is shown once', async ({ server, dashboard, page }) => {
  await subscribe(server, 'shop');
  await standStill(page);
  await dashboard.open('/subscriptions/shop');
  await page.getByRole('button', { name: 'New secret…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('The one before signs for another').fill('1h');
  await dialog.getByRole('button', { name: 'New secret' }).click();
  const secret = await dialog.getByTestId('secret').inputValue();
  expect(secret).toMatch(/^whsec_/);
  await dialog.getByRole('button', { name: 'I have kept it' }).click();
  await expect(page.getByRole('region', { name: 'What it is' })).toContainText(/2\s*· the older end\s*in 1 h/);
  expect(await page.content()).not.toContain(secret);
});

test('it is deleted once its name is typed, and the page goes back to the list', async ({ server, dashboard, page }) => {
  await subscribe(server, 'shop');
  await server.post('/v1/subscriptions/shop/pause');
  await publish(server, 'orders.created', 'one', 'two', 'three');
  await dashboard.open('/subscriptions/shop');
  await page.getByRole('button', { name: 'Delete…' }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByTestId('confirm-count')).toHaveText('3');
  await dialog.getByRole('textbox').fill('sho');
  await expect(dialog.getByRole('button', { name: 'Delete' })).toBeDisabled();
  await dialog.getByRole('textbox').fill('shop');
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await expect(page).toHaveURL(/\/subscriptions$/);
  expect((await server.get('/v1/subscriptions')).subscriptions).toEqual([]);
});

test('dead deliveries are grouped, and redriven through the subscription', async ({ server, dashboard, page }) => {
  await subscribe(server, 'shop', { retry: { max_attempts: 1, jitter: 'none' }, breaker: null });
  receiver.answer = { status: 500, body: 'no' };
  await publish(server, 'orders.created', 'one', 'two', 'three');
  await expect.poll(async () => (await server.get('/v1/queues/bus.sub.shop/stats')).states.dead).toBe(3);
  receiver.answer = { status: 200 };
  const asked: string[] = [];
  page.on('request', (request) => {
    if (request.method() === 'POST') asked.push(new URL(request.url()).pathname);
  });
  await dashboard.open('/subscriptions/shop');
  const dead = page.getByRole('region', { name: 'Dead deliveries' });
  await expect(dead.locator('tr.item')).toHaveCount(1);
  await expect(dead.getByRole('region', { name: 'The newest 20' }).locator('tbody tr')).toHaveCount(3);
  await dead.locator('tr.item').getByRole('button', { name: 'Redrive' }).click();
  const wizard = page.getByRole('dialog');
  await expect(wizard.getByTestId('wizard-count')).toHaveText('3');
  await expect(wizard).toContainText('Subscription');
  await wizard.getByRole('button', { name: 'Next' }).click();
  await wizard.getByRole('button', { name: 'Next' }).click();
  await page.reload();
  await wizard.getByRole('button', { name: 'Redrive 3 messages' }).click();
  await expect(wizard.getByTestId('operation')).toHaveAttribute('data-state', 'done');
  await wizard.getByRole('button', { name: 'Close' }).last().click();
  await expect.poll(() => receiver.received.length).toBe(6);
  expect(new Set(asked)).toEqual(new Set(['/v1/subscriptions/shop/dead/redrive']));
  await expect(page.getByRole('region', { name: 'What it is' }).getByRole('link', { name: '0 dead' })).toBeVisible();
});

test('events of the past are replayed', async ({ server, dashboard, page }) => {
  await server.call('PUT', '/v1/topics/orders.*', { retain_ms: 86_400_000 });
  await publish(server, 'orders.created', 'one', 'two');
  await server.advance(1_000);
  await subscribe(server, 'shop');
  await dashboard.open('/subscriptions/shop');
  await page.getByLabel('Since').fill('2020-01-01T00:00:00');
  await page.getByRole('button', { name: 'Replay…' }).click();
  await expect(page.getByTestId('confirm-filter')).toContainText('Since 2020-01-01 00:00:00');
  await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click();
  await expect(page.getByText('The replay has begun.')).toBeVisible();
  await expect.poll(() => receiver.received.length).toBe(2);
});

test('a replay that is under way shows how far it is, and is ended', async ({ server, dashboard, page }) => {
  await server.call('PUT', '/v1/topics/orders.*', { retain_ms: 86_400_000 });
  await publish(server, 'orders.created', ...Array.from({ length: 400 }, (_, at) => `event ${at}`));
  await server.advance(1_000);
  // There is no room for all of them: the replay waits for its next attempt, and the clock stands.
  await server.create('audit', { max_waiting: 300 });
  await server.post('/v1/subscriptions', { id: 'auditor', pattern: 'orders.*', target: { kind: 'queue', queue: 'audit' } });
  await dashboard.open('/subscriptions/auditor');
  await page.getByLabel('Since').fill('2020-01-01T00:00:00');
  await page.getByRole('button', { name: 'Replay…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click();
  await expect(page.getByText('The replay has begun.')).toBeVisible();
  const replays = async (): Promise<Json[]> => (await server.get('/v1/subscriptions/auditor/replays')).replays;
  await expect.poll(async () => (await replays())[0]?.replayed).toBe(256);
  await expect.poll(async () => (await server.get('/v1/queues/audit/stats')).states.ready).toBe(300);
  const list = page.getByRole('region', { name: 'Replays under way' });
  await expect(list.locator('td.number')).toHaveText('256');
  await expect(list).toContainText('2020-01-01 00:00:00');
  await dashboard.accessible('a replay');

  const question = page.getByRole('dialog', { name: 'End the replay to auditor' });
  await list.getByRole('button', { name: 'End it…' }).click();
  await expect(question).toContainText('What was brought so far stays: 256 when this was asked.');
  await question.getByRole('button', { name: 'Cancel' }).click();
  expect(await replays()).toHaveLength(1);
  await list.getByRole('button', { name: 'End it…' }).click();
  await question.getByRole('button', { name: 'End it' }).click();
  await expect(page.getByText('No replay is under way.')).toBeVisible();
  expect(await replays()).toEqual([]);
  expect((await server.get('/v1/queues/audit/stats')).states.ready).toBe(300);
});

test('an endpoint that does nothing but fail says since when', async ({ server, dashboard, page }) => {
  await subscribe(server, 'shop', { retry: { jitter: 'none', base_delay_ms: 1_000, multiplier: 1 }, breaker: null });
  receiver.answer = { status: 500 };
  await publish(server, 'orders.created', 'x');
  await expect(async () => {
    await server.advance(10_000);
    expect((await view(server, 'shop')).failing_since).toBeDefined();
  }).toPass();
  await dashboard.open('/subscriptions');
  await expect(page.locator('tr[data-key="shop"]')).toContainText(/ago/);
  await dashboard.open('/subscriptions/shop');
  await expect(page.getByRole('region', { name: 'What it is' })).toContainText('Failing since');
});

test('a subscription, its list and its dialogs fit the smallest screen', async ({ server, dashboard, page }) => {
  await subscribe(server, 'shop');
  receiver.answer = { status: 500, body: 'x'.repeat(900) };
  await publish(server, 'orders.created', 'y'.repeat(900));
  await dashboard.open('/subscriptions/shop');
  await page.getByRole('button', { name: 'Request and response' }).click();
  await expect(page.getByRole('region', { name: 'Body of the response' })).toBeVisible();
  await fitsNarrow(page);
  await dashboard.accessible('a subscription at 400 %');
  await page.getByRole('button', { name: 'Edit…' }).click();
  await page.getByText('Retries, timeout, breaker').click();
  expect(await page.locator('dialog').evaluate((one) => one.scrollWidth - one.clientWidth)).toBeLessThanOrEqual(0);
  await page.keyboard.press('Escape');
  await dashboard.open('/subscriptions');
  await expect(page.locator('tr.item')).toHaveCount(1);
  await fitsNarrow(page);
});

test.describe('with keys', () => {
  test.use({ wanted: { keyed: true, flags: ['--webhook-allow', '127.0.0.1:*'] } });

  test('who may only read sees deliveries, and no button that would fail', async ({ server, dashboard, page }) => {
    await subscribe(server, 'shop');
    await publish(server, 'orders.created', 'x');
    await expect.poll(async () => (await attempts(server, 'shop')).length).toBe(1);
    await dashboard.open('/subscriptions');
    await dashboard.signIn(await server.key('watcher', ['read', '*']));
    await expect(page.locator('tr.item')).toHaveCount(1);
    await expect(page.getByRole('button', { name: 'Create…' })).toHaveCount(0);
    await page.getByRole('link', { name: 'shop', exact: true }).click();
    const list = page.getByRole('region', { name: 'Last deliveries' });
    await list.getByRole('button', { name: 'Request and response' }).click();
    await expect(page.getByRole('region', { name: 'Body of the request' })).toBeVisible();
    const named = /Pause|Disable|Edit|secret|Delete|Trip|Resend|Redrive|Replay/;
    await expect(page.getByRole('button', { name: named })).toHaveCount(0);
    await expect(page.locator('main form')).toHaveCount(0);
  });

  test('who may not read sees whose it is, and no secret path', async ({ server, dashboard, page }) => {
    await subscribe(server, 'shop');
    await dashboard.open('/subscriptions/shop');
    await dashboard.signIn(await server.key('worker', ['consume', '*']));
    await expect(page.getByText('for keys that may read this subscription')).toBeVisible();
    await expect(page.getByRole('region', { name: 'What it is' })).toContainText(new URL(receiver.url).origin);
    expect(await page.content()).not.toContain('/hooks');
  });
});
