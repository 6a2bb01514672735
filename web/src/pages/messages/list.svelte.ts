// The messages of a queue that match, page by page as somebody scrolls, and kept up to date where somebody looks.

import { untrack } from 'svelte';
import { type Schema, get } from '../../lib/api/client';
import { Problem } from '../../lib/api/problem';
import { clock } from '../../lib/clock.svelte';
import { live } from '../../lib/live.svelte';
import { toQuery } from './address';
import type { Filter } from './filter';
import { type Extent, type Found, ROWS_MAX, type Row, UNKNOWN, hasGap, rowOf, withFound } from './rows';

/** What is listed. */
export interface Listed {
  queue: string;
  filter: Filter;
  newestFirst: boolean;
}

/** How many messages one call asks for, and how many where more came than that. */
const PAGE = 200;
const LARGE_PAGE = 1_000;
/** How many calls in a row may find less than a page. The server looks at some thousand messages in each, and somebody waits. */
const CALLS_MAX = 25;
/** How many calls may join what came at the beginning with what is known. */
const JOINS_MAX = 5;
/** For how many times as long as it took to be read again the list rests: one page must not keep a server busy. */
const REST = 5;
/** How many values of each part are remembered to be offered. */
const SEEN_MAX = 50;

const SEEN = ['type', 'source', 'key', 'consumer'] as const;
export type Seen = Record<(typeof SEEN)[number], readonly string[]>;
const NOTHING_SEEN: Seen = { type: [], source: [], key: [], consumer: [] };

/** A list that grows. Made while a component is. */
export class MessageList {
  #extent = $state.raw<Extent>(UNKNOWN);
  problem = $state.raw<Problem | null>(null);
  loading = $state(false);
  /** Whether the search rests: it looked at many messages and found few. */
  resting = $state(false);
  /** Values that were seen in rows, to be offered. */
  seen = $state.raw<Seen>(NOTHING_SEEN);

  #listed: Listed | null = null;
  #under = new AbortController();
  /** The first row in sight, and the one that was when rows were last read again. */
  #sight = 0;
  #readAt = 0;
  /** Whether something happened in the queue since the list was begun: rows out of sight may be old then. */
  #stirred = false;
  #refreshing = false;
  /** Whether something happened while it was being read. */
  #again = false;
  /** Until when it is not read again, and what waits for that. */
  #restsUntil = 0;
  #later: ReturnType<typeof setTimeout> | undefined;
  /** Whether it was to be read again while nobody saw the page. */
  #unseen = false;

  constructor(wanted: () => Listed | null) {
    $effect(() => {
      const listed = wanted();
      // What is found must not begin it anew.
      untrack(() => this.#start(listed));
      return () => this.#end();
    });
    $effect(() => live.watch(
      () => ({ queue: this.#listed?.queue ?? '' }),
      () => {
        this.#stirred = true;
        void this.refresh();
        return true;
      },
    ));
    $effect(() => {
      const seen = () => {
        if (!this.#unseen || document.hidden) return;
        this.#unseen = false;
        this.#byItself();
      };
      document.addEventListener('visibilitychange', seen);
      return () => document.removeEventListener('visibilitychange', seen);
    });
  }

  get rows(): readonly Row[] {
    return this.#extent.rows;
  }

  /** Whether everything that matches is here. */
  get complete(): boolean {
    return this.#extent.complete;
  }

  /** Whether as many rows are here as may be. */
  get full(): boolean {
    return this.rows.length >= ROWS_MAX;
  }

  #end(): void {
    this.#under.abort();
    clearTimeout(this.#later);
    this.#later = undefined;
    this.#again = false;
  }

  #start(listed: Listed | null): void {
    this.#end();
    this.#under = new AbortController();
    if (listed?.queue !== this.#listed?.queue) this.seen = NOTHING_SEEN;
    this.#listed = listed;
    this.#extent = UNKNOWN;
    this.#stirred = false;
    this.#sight = 0;
    this.problem = null;
    this.loading = false;
    this.resting = false;
    if (listed !== null) void this.#grow();
  }

  /** Somebody has come to the end of what is here. */
  more(): void {
    if (!this.loading && !this.complete && !this.resting && !this.full && this.problem === null) void this.#grow();
  }

  /** Goes on after a rest, or after something went wrong. */
  again(): void {
    this.resting = false;
    this.problem = null;
    this.more();
  }

  /** Which row is the first in sight. Where that is far from what was last read again, this is read again, too. */
  look(first: number): void {
    this.#sight = first;
    if (this.#stirred && !live.paused && Math.abs(first - this.#readAt) > PAGE / 2) void this.refresh();
  }

  /** Reads on until there is a page more, the end, or reason to rest. */
  async #grow(): Promise<void> {
    const { signal } = this.#under;
    const wanted = Math.min(this.rows.length + PAGE, ROWS_MAX);
    this.loading = true;
    try {
      for (let calls = 0; this.rows.length < wanted && !this.complete; calls++) {
        if (calls === CALLS_MAX) {
          this.resting = true;
          break;
        }
        const after = this.#extent.upTo;
        const found = await this.#find(after, PAGE, signal);
        // Where the list was read again meanwhile, and ends elsewhere now, this does not follow it.
        if (this.#extent.upTo === after && !this.complete) this.#take(found);
      }
    } catch (cause) {
      if (!signal.aborted) this.problem = asProblem(cause);
    } finally {
      if (!signal.aborted) {
        this.loading = false;
        this.#read();
      }
    }
  }

  /** Something was read: what happened meanwhile is read after it. */
  #read(): void {
    if (!this.#again) return;
    this.#again = false;
    this.#byItself();
  }

  /** Reads again what nobody asked for: not while the page stands still, or is not seen. Going on, or coming back, makes up for it. */
  #byItself(): void {
    if (live.paused) return;
    if (document.hidden) this.#unseen = true;
    else void this.refresh();
  }

  /** Reads again what is in sight; not at once where the server had much to do for it the last time. */
  async refresh(): Promise<void> {
    if (this.#listed === null) return;
    if (this.#refreshing || this.loading) {
      this.#again = true;
      return;
    }
    const began = performance.now();
    if (began < this.#restsUntil) {
      this.#later ??= setTimeout(() => {
        this.#later = undefined;
        this.#byItself();
      }, this.#restsUntil - began);
      return;
    }
    const { signal } = this.#under;
    this.#refreshing = true;
    this.#readAt = this.#sight;
    try {
      const after = this.rows[this.#sight - 1]?.id ?? null;
      this.#take(await this.#join(await this.#find(after, PAGE, signal), signal));
      this.problem = null;
    } catch (cause) {
      if (!signal.aborted) this.problem = asProblem(cause);
    } finally {
      this.#refreshing = false;
      this.#restsUntil = performance.now() + (performance.now() - began) * REST;
      if (!this.#under.signal.aborted) this.#read();
    }
  }

  /** More of what came at the beginning, until it joins what is known. */
  async #join(found: Found, signal: AbortSignal): Promise<Found> {
    let joined = found;
    for (let calls = 0; calls < JOINS_MAX && hasGap(this.#extent, joined, this.#newestFirst); calls++) {
      const more = await this.#find(joined.next, LARGE_PAGE, signal);
      joined = { rows: [...joined.rows, ...more.rows], after: joined.after, next: more.next };
    }
    return joined;
  }

  get #newestFirst(): boolean {
    return this.#listed?.newestFirst ?? false;
  }

  async #find(after: string | null, limit: number, signal: AbortSignal): Promise<Found> {
    const { queue, filter, newestFirst } = this.#listed as Listed;
    const query = { ...toQuery(filter, clock.exact()), newest_first: newestFirst, limit, cursor: after ?? undefined, bodies: false };
    const page: Schema['MessagePage'] = await get('/v1/queues/{queue}/messages', { path: { queue }, query, signal });
    signal.throwIfAborted();
    return { rows: page.messages.map(rowOf), after, next: page.next_cursor ?? null };
  }

  #take(found: Found): void {
    this.#extent = withFound(this.#extent, found, this.#newestFirst);
    this.#remember(found.rows);
  }

  #remember(fresh: readonly Row[]): void {
    const next = { ...this.seen };
    let more = false;
    for (const field of SEEN) {
      const known = new Set(next[field]);
      for (const row of fresh) if (row[field] !== null && known.size < SEEN_MAX) known.add(row[field]);
      if (known.size === next[field].length) continue;
      next[field] = [...known].sort();
      more = true;
    }
    if (more) this.seen = next;
  }
}

function asProblem(cause: unknown): Problem {
  return cause instanceof Problem ? cause : new Problem(0, 'PAGE_ERROR', String(cause));
}
