// @vitest-environment node
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Told } from './live.svelte';

type Module = typeof import('./live.svelte');
let concerns: Module['concerns'];
let live: Module['live'];

beforeAll(async () => {
  vi.stubGlobal('location', { origin: 'http://x' });
  vi.stubGlobal('document', { baseURI: 'http://x/', hidden: false, addEventListener: () => undefined });
  // Without locks each tab has a stream of its own.
  vi.stubGlobal('navigator', {});
  ({ concerns, live } = await import('./live.svelte'));
});

function event(type: string, queue: string): Told {
  return { id: '1', type, timestamp: 0, payload: { queue, count: 1, dlq_count: 0, triggered_by: 'consumer' } };
}

describe('concerns', () => {
  const events = [event('enqueue', 'orders'), event('ack', 'mail')];

  it('is told of everything where nothing is named', () => {
    expect(concerns({}, events)).toBe(true);
    expect(concerns({}, [])).toBe(false);
  });

  it('is told of a queue, of types, or of types of a queue', () => {
    expect(concerns({ queue: 'mail' }, events)).toBe(true);
    expect(concerns({ queue: 'other' }, events)).toBe(false);
    expect(concerns({ types: ['ack', 'nack'] }, events)).toBe(true);
    expect(concerns({ types: ['nack'] }, events)).toBe(false);
    expect(concerns({ queue: 'orders', types: ['ack'] }, events)).toBe(false);
  });
});

describe('the stream', () => {
  const EVENT = JSON.stringify(event('ack', 'mail'));
  /** When the server was asked, and behind which event. */
  let asked: { at: number; behind: string | null }[];
  /** What it answers, each time. */
  let answer: () => Response;

  const ends = (text: string) => () => new Response(text);
  /** Says this, and nothing more. */
  const stays = (text: string) => () =>
    new Response(new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode(text)) }));
  /** Lets everything happen that waits for nothing but its turn. */
  const settle = async () => {
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  const pass = async (ms: number) => {
    await settle();
    for (let passed = 0; passed < ms; passed += 250) {
      vi.advanceTimersByTime(250);
      await settle();
    }
  };
  /** How long it stayed away each time. */
  const gaps = () => asked.slice(1).map(({ at }, index) => at - (asked[index]?.at ?? 0));

  beforeEach(() => {
    vi.useFakeTimers({ now: 0, toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] });
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    asked = [];
    vi.stubGlobal('fetch', (_: URL, init: { headers: Headers }) => {
      asked.push({ at: Date.now(), behind: init.headers.get('last-event-id') });
      return Promise.resolve(answer());
    });
  });
  afterEach(() => {
    live.stop();
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  it('stays away longer each time where each answer ends at once', async () => {
    answer = ends(': redrive\n\n');
    live.start();
    await pass(50_000);
    expect(gaps()).toEqual([1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
  });

  it('begins anew after an event', async () => {
    answer = ends(': redrive\n\n');
    live.start();
    await pass(8_000);
    expect(gaps()).toEqual([1_000, 2_000, 4_000]);
    answer = ends(`id: 7\ndata: ${EVENT}\n\n`);
    await pass(9_000);
    expect(gaps()).toEqual([1_000, 2_000, 4_000, 8_000, 1_000, 1_000]);
  });

  it('never comes back sooner than the server asks for, and not much later', async () => {
    answer = ends('retry: 3000\n\n');
    live.start();
    await pass(13_000);
    expect(gaps()).toEqual([3_250, 3_500, 4_000]);
    answer = ends('retry: 999999999\n\n');
    await pass(80_000);
    expect(gaps()[4]).toBeGreaterThanOrEqual(60_000);
    expect(gaps()[4]).toBeLessThan(65_000);
  });

  it('passes over an event that it cannot read, and goes on behind it', async () => {
    const told: string[] = [];
    const gone: (number | null)[] = [];
    const untail = live.tail((events) => told.push(...events.map(({ id }) => id)), (missed) => gone.push(missed));
    answer = ends(`id: 7\ndata: ${EVENT}\n\nid: 8\ndata: {"type":\n\nid: 9\ndata: null\n\n`);
    live.start();
    await settle();
    answer = ends('');
    await pass(1_000);
    untail();
    expect(told).toEqual(['7']);
    expect(gone).toEqual([null, null]);
    expect(asked.at(-1)?.behind).toBe('9');
  });

  it('is slow where it is refused, asks now and then, and is live once it may', async () => {
    answer = () => new Response('{}', { status: 403 });
    live.start();
    await settle();
    expect(live.state).toBe('slow');
    await pass(30_000);
    expect(live.state).toBe('slow');
    expect(gaps()).toEqual([15_000, 15_000]);
    answer = stays(': redrive\n\n');
    await pass(15_000);
    expect(live.state).toBe('live');
  });

  it('tells of a burst of events once, however many came', async () => {
    const told: number[] = [];
    const unwatch = live.watch(() => ({}), () => told.push(Date.now()) > 0);
    answer = stays(Array.from({ length: 500 }, (_, id) => `id: ${id + 1}\ndata: ${EVENT}\n\n`).join(''));
    live.start();
    await pass(10_000);
    unwatch();
    expect(told).toEqual([1_000]);
  });

  it('tells who is busy again, each second, and not while the page stands still', async () => {
    const told: number[] = [];
    let busy = true;
    const unwatch = live.watch(() => ({}), () => {
      told.push(Date.now());
      return !busy;
    });
    answer = stays(`id: 7\ndata: ${EVENT}\n\n`);
    live.start();
    await pass(3_000);
    expect(told).toEqual([1_000, 2_000, 3_000]);
    live.pause(true);
    await pass(5_000);
    expect(told).toEqual([1_000, 2_000, 3_000]);
    live.pause(false);
    busy = false;
    await pass(5_000);
    unwatch();
    expect(told).toEqual([1_000, 2_000, 3_000, 9_000]);
  });

  it('ends with a key that is not taken', async () => {
    answer = () => new Response('{}', { status: 401 });
    live.start();
    await pass(60_000);
    expect(asked).toHaveLength(1);
    expect(live.state).toBe('lost');
  });
});
