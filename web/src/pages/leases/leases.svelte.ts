// The leases of the page, kept up to date: read page by page, and again when something happens that ends or starts one.

import { untrack } from 'svelte';
import { type Schema, get } from '../../lib/api/client';
import { Problem } from '../../lib/api/problem';
import { clock } from '../../lib/clock.svelte';
import * as format from '../../lib/format';
import { live } from '../../lib/live.svelte';
import { session } from '../../lib/session.svelte';
import { type Held, LeaseBook, type Order, byQueue } from './book';
import { type Fate, fateOf } from './fate';

/** Which leases. */
export interface Filter {
  queue: string;
  consumer: string;
}

/** How many leases one call asks for, and how many are read in all. */
const PAGE = 1_000;
const LEASES_MAX = 10_000;
/** How many calls are made for it at most: a page may be empty and have a next one. */
const PAGES_MAX = 200;
/** How often many are read again, at most: more than a page of them is work for the server, too. */
const MANY_MS = 5_000;
/** How many messages are asked for where they went, each time. */
const ASKED_MAX = 50;
/** What starts, ends or changes leases. That messages come in does not. */
const TYPES = ['lease', 'ack', 'nack', 'requeue', 'move_to_dlq', 'queue', 'subscription'];

export class Leases {
  problem = $state.raw<Problem | null>(null);
  loading = $state(false);
  /** Whether they were read, and not only some of them. */
  known = $state(false);
  /** How many have been read so far. */
  read = $state(0);
  /** Whether there are more than are read. */
  more = $state(false);
  /** The keys of those that are drawn. Whoever draws one says so. */
  readonly sight = new Set<string>();

  #book = $state.raw(new LeaseBook());
  // The book is changed in place: this is what tells that it was.
  #version = $state(0);
  #filter: () => Filter;
  #order: () => Order;
  #under: AbortController | null = null;
  /** Whether somebody asked for them while they were read. */
  #again = false;
  #readAt = Number.NEGATIVE_INFINITY;

  /** Made while a component is. */
  constructor(filter: () => Filter, order: () => Order) {
    this.#filter = filter;
    this.#order = order;
    $effect(() => {
      const wanted = filter();
      untrack(() => {
        this.#book = new LeaseBook();
        this.known = false;
        this.more = false;
        void this.#load(wanted);
      });
      const unwatch = live.watch(
        () => ({ queue: wanted.queue === '' ? undefined : wanted.queue, types: TYPES }),
        () => this.#told(),
      );
      return () => {
        unwatch();
        this.#under?.abort();
      };
    });
    $effect(() => {
      if (this.#book.drop(clock.now)) this.#version++;
    });
  }

  /** The leases, and those that have just ended, in order. */
  readonly rows = $derived.by(() => {
    void this.#version;
    return this.#book.rows(this.#order());
  });

  readonly count = $derived.by(() => {
    void this.#version;
    return this.#book.size;
  });

  readonly overdue = $derived.by(() => {
    void this.#version;
    return clock.known ? this.#book.overdue(clock.now) : 0;
  });

  /** How many end within so long from now, and are not overdue. */
  ending(within: number): number {
    void this.#version;
    return this.#book.overdue(clock.now, within) - this.overdue;
  }

  /** Those of some keys that have not ended. */
  of(keys: Iterable<string>): Held[] {
    void this.#version;
    const found: Held[] = [];
    for (const key of keys) {
      const held = this.#book.get(key);
      if (held) found.push(held);
    }
    return found;
  }

  /** How many are overdue in each queue; new when the number of them is, or when other leases were read. */
  readonly overdueByQueue = $derived.by(() => {
    void this.#version;
    return this.overdue === 0 ? new Map<string, number>() : untrack(() => this.#book.overdueByQueue(clock.now));
  });

  /** Reads them again for somebody who wants that, now. */
  refresh(): void {
    if (this.loading) this.#again = true;
    else void this.#load(untrack(this.#filter));
  }

  /** Something happened. They are read again unless they are being read, or many were a moment ago; says whether they are. */
  #told(): boolean {
    const early = this.#book.size > PAGE && performance.now() < this.#readAt + MANY_MS;
    if (this.loading || early) return false;
    this.refresh();
    return true;
  }

  async #load(filter: Filter): Promise<void> {
    this.#under?.abort();
    const under = new AbortController();
    this.#under = under;
    this.#again = false;
    this.loading = true;
    try {
      await this.#read(filter, under.signal);
      this.problem = null;
    } catch (cause) {
      if (under.signal.aborted) return;
      this.problem = cause instanceof Problem ? cause : new Problem(0, 'PAGE_ERROR', String(cause));
    } finally {
      if (this.#under === under) this.loading = false;
      this.#readAt = performance.now();
    }
    if (this.#again) this.refresh();
  }

  async #read(filter: Filter, signal: AbortSignal): Promise<void> {
    const book = this.#book;
    let cursor: string | undefined;
    let pages = 0;
    this.read = 0;
    book.begin();
    do {
      const query = { queue: filter.queue, consumer: filter.consumer, limit: PAGE, cursor };
      const page = await get('/v1/leases', { query, signal });
      book.take(page.leases, format.ms(page.at));
      this.read += page.leases.length;
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined && this.read < LEASES_MAX && ++pages < PAGES_MAX);
    // Putting ten thousand in order is a task of its own, so that no task is a long one.
    if (this.read > PAGE) await breath();
    signal.throwIfAborted();
    book.finish(clock.exact(), this.sight);
    this.more = cursor !== undefined;
    this.known = true;
    if (this.read > PAGE) await breath();
    this.#version++;
    await this.#whereTheyWent(book, signal);
  }

  /** Asks where the messages went whose leases have ended before the eyes of the user. */
  async #whereTheyWent(book: LeaseBook, signal: AbortSignal): Promise<void> {
    const asked = book.ended.filter((held) => held.ended?.fate === null).slice(0, ASKED_MAX);
    if (asked.length === 0) return;
    for (const [queue, leases] of byQueue(asked)) {
      for (const [key, fate] of await fates(queue, leases, signal)) book.settle(key, fate);
    }
    this.#version++;
  }
}

/** Where messages of one queue went, as far as the server says. */
async function fates(queue: string, leases: readonly Held[], signal: AbortSignal): Promise<Map<string, Fate>> {
  const ids = [...new Set(leases.map((held) => held.row.id))];
  const found = new Map<string, Fate>();
  const settle = (of: readonly Held[], message?: Parameters<typeof fateOf>[1]) => {
    for (const held of of) found.set(held.key, fateOf(held.row.lease.lease_id, message));
  };
  try {
    for (const message of await named(queue, ids, signal)) settle(leases.filter((held) => held.row.id === message.id), message);
    const missing = leases.filter((held) => !found.has(held.key));
    settle(missing);
    for (const [key, fate] of await amongDead(queue, missing, signal)) found.set(key, fate);
  } catch (cause) {
    if (signal.aborted) throw cause;
    // A queue that is not there any more took its messages with it; otherwise nobody knows, and the next reading asks again.
    if (cause instanceof Problem && cause.status === 404) settle(leases);
  }
  return found;
}

/** The messages of a queue that have one of these ids. */
async function named(queue: string, ids: readonly string[], signal: AbortSignal): Promise<Schema['MessageView'][]> {
  const found: Schema['MessageView'][] = [];
  let cursor: string | undefined;
  do {
    const query = { id: [...ids], limit: ids.length, bodies: false, cursor };
    const page = await get('/v1/queues/{queue}/messages', { path: { queue }, query, signal });
    found.push(...page.messages);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return found;
}

/** Which of the messages that are missing in a queue are where its dead letters go, as far as the user may look there. */
async function amongDead(queue: string, missing: readonly Held[], signal: AbortSignal): Promise<Map<string, Fate>> {
  const found = new Map<string, Fate>();
  if (missing.length === 0) return found;
  try {
    const grave = (await get('/v1/queues/{queue}', { path: { queue }, signal })).settings.dead_letter_to;
    if (!grave || !session.may('read', grave)) return found;
    const there = new Set((await named(grave, missing.map((held) => held.row.id), signal)).map((message) => message.id));
    for (const held of missing) if (there.has(held.row.id)) found.set(held.key, { to: 'moved', queue: grave });
  } catch (cause) {
    // They are gone from their queue, whatever becomes of this question.
    if (signal.aborted) throw cause;
  }
  return found;
}

/** Lets the browser do something else in between. */
function breath(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
