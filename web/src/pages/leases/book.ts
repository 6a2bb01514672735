// The leases that the page knows, merged with what the server says now.
//
// There may be ten thousand, and a second has more to do than to sort them: a list is taken page by page, what has not changed stays the
// same object, so that nothing of it is drawn again, and it is put in order once, when it is complete. How many are overdue is
// asked every second and found by halving.

import type { Schema } from '../../lib/api/client';
import type { Fate } from './fate';

/** A lease, with its times as numbers. One of a message is another than the next one of it. */
export interface Held {
  readonly key: string;
  readonly row: Schema['LeaseRow'];
  readonly deadline: number;
  readonly leasedAt: number;
  /**
   * From when on the deadline was counted: since it was leased, or since it was first seen to be extended. When exactly it was
   * extended nobody says, and a lease that is kept alive for an hour, half a minute at a time, is not always about to end.
   */
  readonly from: number;
  /** When it was missed first, for a lease that has ended, and where its message went, once that is known. */
  readonly ended: { at: number; fate: Fate | null } | null;
}

/** What the list is sorted by. */
export const ORDERS = ['left', 'queue', 'consumer', 'age'] as const;
export interface Order {
  by: (typeof ORDERS)[number];
  desc: boolean;
}

/** How long a lease that has ended stays, to say where its message went. */
export const STAYS_MS = 10_000;
/** How many of those there are at most. */
export const ENDED_MAX = 100;

export function keyOf(row: Schema['LeaseRow']): string {
  return `${row.queue}/${row.id}#${row.lease.lease_id}`;
}

function text(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

const COMPARE: Record<Order['by'], (one: Held, other: Held) => number> = {
  left: (one, other) => one.deadline - other.deadline,
  queue: (one, other) => text(one.row.queue, other.row.queue),
  consumer: (one, other) => text(one.row.lease.consumer, other.row.lease.consumer),
  age: (one, other) => one.leasedAt - other.leasedAt,
};

/** Leases in an order: what is alike, by what ends first. */
export function sorted(leases: readonly Held[], order: Order): Held[] {
  const compare = COMPARE[order.by];
  const way = order.desc ? -1 : 1;
  return [...leases].sort((one, other) => way * compare(one, other) || one.deadline - other.deadline || text(one.key, other.key));
}

export function byQueue(leases: readonly Held[]): Map<string, Held[]> {
  const found = new Map<string, Held[]>();
  for (const held of leases) {
    const others = found.get(held.row.queue);
    if (others) others.push(held);
    else found.set(held.row.queue, [held]);
  }
  return found;
}

/** How many of some numbers, in order, are not larger than this one. */
export function upTo(ordered: Float64Array, most: number): number {
  let low = 0;
  let high = ordered.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ordered[middle] ?? Number.POSITIVE_INFINITY) <= most) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class LeaseBook {
  #held = new Map<string, Held>();
  #ended = new Map<string, Held>();
  #taken: Map<string, Held> | null = null;
  #deadlines = new Float64Array();

  /** How many leases there are. */
  get size(): number {
    return this.#held.size;
  }

  get ended(): readonly Held[] {
    return [...this.#ended.values()];
  }

  has(key: string): boolean {
    return this.#held.has(key);
  }

  get(key: string): Held | undefined {
    return this.#held.get(key);
  }

  /** How many have their deadline behind them at this time, or within so long after it. */
  overdue(now: number, within = 0): number {
    return upTo(this.#deadlines, now + within);
  }

  /** How many are overdue in each queue. */
  overdueByQueue(now: number): Map<string, number> {
    const found = new Map<string, number>();
    for (const { deadline, row } of this.#held.values()) {
      if (deadline <= now) found.set(row.queue, (found.get(row.queue) ?? 0) + 1);
    }
    return found;
  }

  /** Begins to take a list. One that was begun before and not finished is forgotten. */
  begin(): void {
    this.#taken = new Map();
  }

  /** Takes a page of it, as of a time of the server. */
  take(rows: readonly Schema['LeaseRow'][], at: number): void {
    for (const row of rows) {
      const key = keyOf(row);
      this.#taken?.set(key, this.#known(key, row, at));
    }
  }

  /** That was all of it. What is missed now has ended; what was in sight of it stays for a while. */
  finish(now: number, sight: ReadonlySet<string>): void {
    const taken = this.#taken ?? new Map<string, Held>();
    this.#taken = null;
    for (const key of this.#ended.keys()) if (taken.has(key)) this.#ended.delete(key);
    for (const [key, held] of this.#held) {
      if (!taken.has(key) && sight.has(key) && this.#ended.size < ENDED_MAX) this.#ended.set(key, { ...held, ended: { at: now, fate: null } });
    }
    this.#held = taken;
    this.#deadlines = Float64Array.from(taken.values(), (held) => held.deadline).sort();
  }

  /** Notes where the message of a lease that has ended went. */
  settle(key: string, fate: Fate): void {
    const held = this.#ended.get(key);
    if (held?.ended) this.#ended.set(key, { ...held, ended: { at: held.ended.at, fate } });
  }

  /** Drops what has stayed for long enough; says whether there was any. */
  drop(now: number): boolean {
    const before = this.#ended.size;
    for (const [key, held] of this.#ended) if (held.ended !== null && now - held.ended.at >= STAYS_MS) this.#ended.delete(key);
    return this.#ended.size < before;
  }

  /** All of them, in an order. One that has ended keeps its place. */
  rows(order: Order): Held[] {
    return sorted([...this.#held.values(), ...this.#ended.values()], order);
  }

  #known(key: string, row: Schema['LeaseRow'], at: number): Held {
    const before = this.#held.get(key);
    const deadline = Date.parse(row.lease.deadline);
    if (before?.deadline === deadline) return before;
    const leasedAt = Date.parse(row.lease.leased_at);
    return { key, row, deadline, leasedAt, from: before ? at : leasedAt, ended: null };
  }
}
