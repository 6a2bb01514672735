// Which columns the table of queues has, as chosen on this device.

import type { Schema } from '../../lib/api/client';
import * as format from '../../lib/format';
import { t } from '../../texts';

export type ColumnKey = keyof typeof t.queues.column;

export interface Column {
  key: ColumnKey;
  label: string;
  /** In rem. A count that needs more room gets it: a number that is cut is another number. */
  room: number;
  number?: boolean;
  sorts?: boolean;
  /** What is counted, where the column counts something. */
  counts?: (row: Schema['QueueRow']) => number;
}

const column = (key: ColumnKey, room: number, more: Partial<Column> = {}): Column => ({ key, label: t.queues.column[key], room, ...more });
const number = (key: ColumnKey, room: number, sorts = false) => column(key, room, { number: true, sorts });
const count = (key: 'ready' | 'leased' | 'delayed' | 'dead', room: number) =>
  column(key, room, { number: true, sorts: true, counts: (row) => row.states[key] });

/** Every column. The first is always there: a row without its name says nothing. */
export const COLUMNS: readonly Column[] = [
  column('name', 9, { sorts: true }),
  column('state', 9.2),
  count('ready', 5),
  count('leased', 5.1),
  count('delayed', 5.9),
  count('dead', 4.4),
  number('oldest', 6.6, true),
  number('in', 4.1),
  number('out', 4.1),
  number('failed', 4.8, true),
  number('wait_p50', 6),
  number('wait_p99', 6),
  number('run_p99', 6),
  column('depth', 4.6),
];

/** The width of a column for these rows. */
export function widthOf({ room, counts }: Column, rows: readonly Schema['QueueRow'][]): string {
  const most = counts ? Math.max(0, ...rows.map(counts)) : 0;
  // A digit is about 0.6 rem wide; the rest is the space at both sides.
  return `${Math.max(room, format.count(most).length * 0.6 + 1.1).toFixed(1)}rem`;
}

/** What the API sorts by. */
export const SORTS = ['name', 'ready', 'leased', 'delayed', 'dead', 'oldest', 'failed'] as const;
export type Sort = (typeof SORTS)[number];

const KEPT = 'redrive.queues.columns';
/** Below this width not all fit. */
const WIDE = '(width >= 100rem)';

/** Those that are not shown until they are chosen. */
function usuallyHidden(): ColumnKey[] {
  return matchMedia(WIDE).matches ? ['wait_p50'] : ['wait_p50', 'wait_p99', 'run_p99'];
}

function read(): ColumnKey[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEPT) ?? 'null');
    if (!Array.isArray(kept)) return usuallyHidden();
    return COLUMNS.slice(1).map((one) => one.key).filter((key) => kept.includes(key));
  } catch {
    return usuallyHidden();
  }
}

class Columns {
  /** Those that are not shown. */
  hidden = $state<ColumnKey[]>(read());
  shown = $derived(COLUMNS.filter((one) => !this.hidden.includes(one.key)));

  toggle(key: ColumnKey): void {
    this.hidden = this.hidden.includes(key) ? this.hidden.filter((one) => one !== key) : [...this.hidden, key];
    localStorage.setItem(KEPT, JSON.stringify(this.hidden));
  }
}

export const columns = new Columns();
