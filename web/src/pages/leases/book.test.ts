import { describe, expect, it } from 'vitest';
import type { Schema } from '../../lib/api/client';
import { ENDED_MAX, LeaseBook, type Order, STAYS_MS, keyOf, upTo } from './book';

const START = Date.parse('2026-01-01T00:00:00.000Z');
const FIRST: Order = { by: 'left', desc: false };
const time = (after: number) => new Date(START + after).toISOString();

function lease(id: string, deadline: number, more: { queue?: string; consumer?: string; leased?: number; lease?: string } = {}): Schema['LeaseRow'] {
  const { queue = 'orders', consumer = 'w1', leased = 0, lease = '1' } = more;
  return {
    queue, id, type: '', fairness_key: '', attempts: 1, deliveries: 1, max_attempts: 3,
    lease: { lease_id: lease, consumer, leased_at: time(leased), deadline: time(deadline), age_ms: 0, overdue: false },
  };
}

function read(book: LeaseBook, rows: Schema['LeaseRow'][], after: number, sight: Iterable<string> = []): void {
  book.begin();
  for (let from = 0; from < rows.length; from += 1_000) book.take(rows.slice(from, from + 1_000), START + after);
  book.finish(START + after, new Set(sight));
}

const ids = (book: LeaseBook, order = FIRST) => book.rows(order).map((held) => held.row.id);

describe('LeaseBook', () => {
  it('has what ends first at the top, or whatever else is asked for', () => {
    const book = new LeaseBook();
    read(book, [
      lease('a', 30_000, { queue: 'b', consumer: 'x', leased: 20 }),
      lease('b', 10_000, { queue: 'c', consumer: 'z', leased: 10 }),
      lease('c', 20_000, { queue: 'a', consumer: 'y', leased: 30 }),
      lease('d', 20_000, { queue: 'a', consumer: 'x', leased: 40 }),
    ], 0);
    expect(ids(book)).toEqual(['b', 'c', 'd', 'a']);
    expect(ids(book, { by: 'left', desc: true })).toEqual(['a', 'c', 'd', 'b']);
    expect(ids(book, { by: 'queue', desc: false })).toEqual(['c', 'd', 'a', 'b']);
    expect(ids(book, { by: 'queue', desc: true })).toEqual(['b', 'a', 'c', 'd']);
    expect(ids(book, { by: 'consumer', desc: false })).toEqual(['d', 'a', 'c', 'b']);
    expect(ids(book, { by: 'age', desc: false })).toEqual(['b', 'a', 'c', 'd']);
  });

  it('keeps the object of what has not changed, so that nothing is drawn again', () => {
    const book = new LeaseBook();
    read(book, [lease('a', 30_000), lease('b', 30_000)], 0);
    const before = book.rows(FIRST);
    read(book, [lease('a', 30_000), lease('b', 60_000)], 10_000);
    const after = book.rows(FIRST);
    expect(after[0]).toBe(before[0]);
    expect(after[1]).not.toBe(before[1]);
  });

  it('counts a lease from when it was taken, and an extended one from when that was seen', () => {
    const book = new LeaseBook();
    read(book, [lease('a', 30_000, { leased: 500 })], 1_000);
    expect(book.rows(FIRST)[0]?.from).toBe(START + 500);
    read(book, [lease('a', 50_000, { leased: 500 })], 20_000);
    expect(book.rows(FIRST)[0]?.from).toBe(START + 20_000);
    read(book, [lease('a', 50_000, { leased: 500 })], 25_000);
    expect(book.rows(FIRST)[0]?.from).toBe(START + 20_000);
  });

  it('keeps what has ended in sight in its place for a while, and lets the rest go', () => {
    const book = new LeaseBook();
    const rows = [lease('a', 10_000), lease('b', 20_000), lease('c', 30_000)];
    const [a, b] = rows.map(keyOf) as [string, string];
    read(book, rows, 0);
    read(book, [lease('c', 30_000)], 15_000, [a]);
    expect(ids(book)).toEqual(['a', 'c']);
    expect(book.size).toBe(1);
    expect(book.ended.map((held) => held.key)).toEqual([a]);
    book.settle(a, { to: 'ready', attempt: 2 });
    book.settle(b, { to: 'gone' });
    expect(book.rows(FIRST)[0]?.ended).toEqual({ at: START + 15_000, fate: { to: 'ready', attempt: 2 } });
    expect(book.drop(START + 15_000 + STAYS_MS - 1)).toBe(false);
    expect(book.drop(START + 15_000 + STAYS_MS)).toBe(true);
    expect(ids(book)).toEqual(['c']);
  });

  it('takes the next lease of a message for another one', () => {
    const book = new LeaseBook();
    const first = lease('a', 10_000);
    read(book, [first], 0);
    read(book, [lease('a', 40_000, { lease: '2', consumer: 'w2' })], 12_000, [keyOf(first)]);
    expect(book.rows(FIRST).map((held) => [held.row.lease.consumer, held.ended !== null])).toEqual([
      ['w1', true],
      ['w2', false],
    ]);
  });

  it('forgets that a lease has ended that is there again: the list had not reached it', () => {
    const book = new LeaseBook();
    const one = lease('a', 10_000);
    read(book, [one], 0);
    read(book, [], 1_000, [keyOf(one)]);
    read(book, [one], 2_000);
    expect(book.ended).toEqual([]);
    expect(ids(book)).toEqual(['a']);
  });

  it('keeps so many that have ended and no more', () => {
    const book = new LeaseBook();
    const rows = Array.from({ length: ENDED_MAX + 50 }, (_, at) => lease(`m${at}`, 10_000));
    read(book, rows, 0);
    read(book, [], 1_000, rows.map(keyOf));
    expect(book.ended).toHaveLength(ENDED_MAX);
  });

  it('a list that was not finished changes nothing', () => {
    const book = new LeaseBook();
    read(book, [lease('a', 10_000)], 0);
    book.begin();
    book.take([lease('b', 10_000)], START);
    expect(ids(book)).toEqual(['a']);
    read(book, [lease('c', 10_000)], 0);
    expect(ids(book)).toEqual(['c']);
  });

  it('counts what is overdue, and what is about to be', () => {
    const book = new LeaseBook();
    read(book, [lease('a', 10_000), lease('b', 20_000, { queue: 'mail' }), lease('c', 30_000)], 0);
    expect(book.overdue(START + 9_999)).toBe(0);
    expect(book.overdue(START + 10_000)).toBe(1);
    expect(book.overdue(START + 10_000, 10_000)).toBe(2);
    expect([...book.overdueByQueue(START + 20_000)]).toEqual([
      ['orders', 1],
      ['mail', 1],
    ]);
  });

  it('takes ten thousand in a fraction of a second', () => {
    const book = new LeaseBook();
    const rows = Array.from({ length: 10_000 }, (_, at) => lease(`m${at}`, 10_000 + ((at * 7919) % 10_000)));
    read(book, rows, 0);
    const begun = performance.now();
    read(book, rows, 1_000);
    expect(book.rows(FIRST)).toHaveLength(10_000);
    expect(performance.now() - begun).toBeLessThan(500);
  });
});

describe('upTo', () => {
  it('finds the place of a number by halving', () => {
    const numbers = Float64Array.of(1, 3, 3, 7);
    expect([0, 1, 2, 3, 6, 7, 8].map((most) => upTo(numbers, most))).toEqual([0, 1, 1, 3, 3, 4, 4]);
    expect(upTo(Float64Array.of(), 5)).toBe(0);
  });
});
