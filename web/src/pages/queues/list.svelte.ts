// The queues that the table shows: as many as were scrolled to, in the order and with the filter of the address.

import { type Schema, get } from '../../lib/api/client';
import { Resource } from '../../lib/resource.svelte';
import { router } from '../../lib/router.svelte';
import { SORTS, type Sort } from './columns.svelte';

/** How many rows come at a time. */
const PAGE = 100;
/** The most that one answer may hold. */
const ANSWER_MAX = 1_000;
/** How often rates and ages are looked at again. */
const EVERY_MS = 10_000;

export interface Listed {
  rows: Schema['QueueRow'][];
  total: number;
  ranked_of: number;
  interval_ms: number;
  more: boolean;
}

export interface Wanted {
  name: string;
  sort: Sort;
  desc: boolean;
  rows: number;
}

/** Reads rows until there are as many as are wanted, or no more. */
async function read(wanted: Wanted, signal: AbortSignal): Promise<Listed> {
  const rows: Schema['QueueRow'][] = [];
  let cursor: string | undefined;
  for (;;) {
    const limit = Math.min(ANSWER_MAX, wanted.rows - rows.length);
    const query = { name: wanted.name, sort: wanted.sort, desc: wanted.desc, limit, cursor };
    const page = await get('/v1/stats', { query, signal });
    rows.push(...page.rows);
    cursor = page.next_cursor ?? undefined;
    if (cursor === undefined || rows.length >= wanted.rows || page.rows.length === 0) {
      return { rows, total: page.total, ranked_of: page.ranked_of, interval_ms: page.interval_ms, more: cursor !== undefined };
    }
  }
}

/** The list that the address asks for. Made while a component is. */
export class QueueList {
  name = $derived(router.query.get('name') ?? '');
  sort = $derived(SORTS.find((one) => one === router.query.get('sort')) ?? 'name');
  desc = $derived(router.query.get('desc') === 'true');
  rows = $derived(Math.max(PAGE, Math.floor(Number(router.query.get('rows')) || 0)));

  list = new Resource<Listed>({
    load: (signal) => read({ name: this.name, sort: this.sort, desc: this.desc, rows: this.rows }, signal),
    // A long list is not read again with every event: it would keep the server busy with itself.
    watch: () => (this.rows > PAGE ? null : {}),
    every: EVERY_MS,
  });

  /** The same column again turns the order round; a new one begins with what there is most of. */
  sortBy(key: string): void {
    const sort = SORTS.find((one) => one === key);
    if (sort === undefined) return;
    const desc = sort === this.sort ? !this.desc : sort !== 'name';
    router.set({ sort: sort === 'name' ? null : sort, desc, rows: null });
  }

  filter(name: string): void {
    router.set({ name, rows: null });
  }

  /** Reads on behind the last row. */
  more(): void {
    const { data, loading } = this.list;
    if (data?.more && !loading) router.set({ rows: data.rows.length + PAGE });
  }
}
