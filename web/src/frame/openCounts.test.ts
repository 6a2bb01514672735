import { expect, test, vi } from 'vitest';

vi.mock('../lib/api/client', () => ({ get: () => undefined }));
vi.mock('../lib/place', () => ({ address: (path: string) => path }));
const { counted } = await import('./openCounts.svelte');

const none = { enqueue: 0, lease: 0, ack: 0, nack: 0, requeue: 0, move_to_dlq: 0 };
const sent = (...data: string[]) => data.map((one) => ({ id: '1', event: 'message', data: one }));
const event = (type: string, count: unknown) => JSON.stringify({ type, timestamp: 1, payload: { count, dlq_count: 0, triggered_by: 'producer' } });

test('events of one kind are added up', () => {
  expect(counted({ ...none, ack: 2 }, sent(event('enqueue', 3), event('ack', 1), event('enqueue', 4)))).toEqual({ ...none, enqueue: 7, ack: 3 });
});

test('what is no such event counts for nothing', () => {
  const strange = ['', 'null', '{}', '[]', event('breaker', 1), event('__proto__', 1), event('ack', '1'), event('ack', 1e300), event('ack', null)];
  expect(counted(none, sent(...strange))).toEqual(none);
});
