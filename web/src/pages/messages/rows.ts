// The rows of the list of messages, and how a part of it is read again.

import type { Schema } from '../../lib/api/client';
import * as format from '../../lib/format';
import { line } from '../../lib/visible';

/** What the list keeps of a message: twenty thousand of them, with all that is known of each, would be too much for a page. */
export interface Row {
  id: string;
  state: string;
  type: string;
  source: string;
  key: string;
  attempts: number;
  maxAttempts: number | null;
  createdAt: string;
  visibleAt: string;
  /** Until when it is leased, and by whom. */
  deadline: string | null;
  consumer: string | null;
  deadAt: string | null;
  reason: string | null;
  error: string;
}

/** The most of an error that a row shows, in characters. */
const ERROR_CHARACTERS = 160;

export function rowOf(message: Schema['MessageView']): Row {
  return {
    id: message.id,
    state: message.state,
    type: message.type,
    source: message.source,
    key: message.fairness_key,
    attempts: message.attempts,
    maxAttempts: message.max_attempts ?? null,
    createdAt: message.created_at,
    visibleAt: message.visible_at,
    deadline: message.lease?.deadline ?? null,
    consumer: message.lease?.consumer ?? null,
    deadAt: message.dead_at ?? null,
    reason: message.dead_reason ?? null,
    error: line(message.last_error ?? '', ERROR_CHARACTERS),
  };
}

/** The state at a time of the server. Two arrows write nothing, they follow from the record and the clock: what is delayed is ready when
    its time has come, and what is leased is overdue behind its deadline until the broker moves it. */
export function stateAt(row: Pick<Row, 'state' | 'visibleAt' | 'deadline'>, now: number): string {
  if (row.state === 'delayed' && format.ms(row.visibleAt) <= now) return 'ready';
  if (row.state === 'leased' && row.deadline !== null && format.ms(row.deadline) <= now) return 'overdue';
  return row.state;
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
] as const;

/** A span in its largest unit, for a column that is read at a glance. */
export function rough(ms: number): string {
  const [unit, size] = UNITS.find(([, size]) => ms >= size) ?? ['s', 1_000];
  return `${Math.max(0, Math.floor(ms / size))} ${unit}`;
}

/** How many rows are kept; whoever wants more wants a narrower filter, or an export. */
export const ROWS_MAX = 20_000;

/** A list as far as it is known: everything that matched when it was read, from its beginning up to some id. */
export interface Extent {
  rows: readonly Row[];
  /** Nothing while nothing is known. */
  upTo: string | null;
  /** Whether it is known to its end. */
  complete: boolean;
}

export const UNKNOWN: Extent = { rows: [], upTo: null, complete: false };

/** What was found behind one id, up to another. Nothing stands for the beginning and the end of the list. */
export interface Found {
  rows: readonly Row[];
  after: string | null;
  next: string | null;
}

/** Lists are in the order of their ids, and an id is text that sorts as its number does. */
function isBefore(one: string, other: string, newestFirst: boolean): boolean {
  return newestFirst ? one > other : one < other;
}

/** Whether something is missing between what was found at the beginning and what is known: more came meanwhile than was read. */
export function hasGap(extent: Extent, found: Found, newestFirst: boolean): boolean {
  const [first] = extent.rows;
  return found.after === null && found.next !== null && first !== undefined && isBefore(found.next, first.id, newestFirst);
}

/** The list with what was found in it. What was in the same stretch and was not found is not there any more. */
export function withFound(extent: Extent, found: Found, newestFirst: boolean): Extent {
  const { next } = found;
  // What cannot be joined is left; it is read again when somebody scrolls there.
  if (hasGap(extent, found, newestFirst)) return { rows: found.rows, upTo: next, complete: false };
  const rows = replaced(extent.rows, found, newestFirst);
  if (rows.length > ROWS_MAX) {
    const kept = rows.slice(0, ROWS_MAX);
    return { rows: kept, upTo: kept.at(-1)?.id ?? next, complete: false };
  }
  if (next === null) return { rows, upTo: null, complete: true };
  // What was complete may have grown behind the place up to which it was read again.
  const known = extent.complete ? (rows.at(-1)?.id ?? next) : (extent.upTo ?? next);
  return { rows, upTo: isBefore(known, next, newestFirst) ? next : known, complete: false };
}

function replaced(rows: readonly Row[], { rows: fresh, after, next }: Found, newestFirst: boolean): readonly Row[] {
  const from = after === null ? 0 : firstWhere(rows, (row) => isBefore(after, row.id, newestFirst));
  const to = next === null ? rows.length : firstWhere(rows, (row) => isBefore(next, row.id, newestFirst));
  // The same rows are the same list: nothing has to be drawn again.
  if (fresh.length === to - from && fresh.every((row, at) => same(row, rows[from + at]))) return rows;
  return [...rows.slice(0, from), ...fresh, ...rows.slice(Math.max(from, to))];
}

/** The first place from which on something holds, in a list where it holds from some place on. */
function firstWhere(rows: readonly Row[], holds: (row: Row) => boolean): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(rows[middle] as Row)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function same(one: Row, other: Row | undefined): boolean {
  if (other === undefined) return false;
  return (Object.keys(one) as (keyof Row)[]).every((key) => one[key] === other[key]);
}
