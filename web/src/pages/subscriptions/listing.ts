// The subscriptions that match. The server lists them by name and filters none, so the page compares them itself, up to a bound that
// it tells.

import { type Schema, get } from '../../lib/api/client';

/** How many are asked for at a time, and how often. */
const PAGE = 1_000;
const PAGES_MAX = 10;
/** What waits is read often, so fewer are counted; those beyond say nothing. */
const COUNT_PAGES_MAX = 3;

export interface Wanted {
  /** A part of the id, the pattern, or the target. */
  text: string;
  state: string;
  kind: string;
}

export interface Listing {
  rows: Schema['SubscriptionView'][];
  /** How many were compared. */
  compared: number;
  /** Where to go on, where there are more than were compared. */
  next: string | null;
}

export function targetText(target: Schema['TargetView']): string {
  return target.url ?? target.queue ?? '';
}

export function matches(one: Schema['SubscriptionView'], wanted: Wanted): boolean {
  if (wanted.state !== '' && one.state !== wanted.state) return false;
  if (wanted.kind !== '' && one.target.kind !== wanted.kind) return false;
  const text = wanted.text.toLowerCase();
  return text === '' || [one.id, one.pattern, targetText(one.target)].some((part) => part.toLowerCase().includes(text));
}

/** Those that match, behind a name. */
export async function list(wanted: Wanted, after: string, signal: AbortSignal): Promise<Listing> {
  const rows: Schema['SubscriptionView'][] = [];
  let cursor = after === '' ? undefined : after;
  let compared = 0;
  for (let page = 0; page < PAGES_MAX; page++) {
    const found = await get('/v1/subscriptions', { query: { limit: PAGE, cursor }, signal });
    compared += found.subscriptions.length;
    rows.push(...found.subscriptions.filter((one) => matches(one, wanted)));
    if (!found.next_cursor) return { rows, compared, next: null };
    cursor = found.next_cursor;
  }
  return { rows, compared, next: cursor ?? null };
}

/** How the breakers of subscriptions stand, by subscription. */
export async function breakers(signal: AbortSignal): Promise<Map<string, Schema['BreakerStatus']>> {
  const found = new Map<string, Schema['BreakerStatus']>();
  let cursor: string | undefined;
  for (let page = 0; page < PAGES_MAX; page++) {
    const answer = await get('/v1/breakers', { query: { limit: PAGE, cursor }, signal });
    for (const { subscription, status } of answer.breakers) if (subscription) found.set(subscription, status);
    if (!answer.next_cursor) break;
    cursor = answer.next_cursor;
  }
  return found;
}

/** What waits and what is dead, by subscription. */
export async function counts(signal: AbortSignal): Promise<Map<string, Schema['StateCounts']>> {
  const found = new Map<string, Schema['StateCounts']>();
  let cursor: string | undefined;
  for (let page = 0; page < COUNT_PAGES_MAX; page++) {
    const answer = await get('/v1/stats', { query: { name: 'bus.sub.', sort: 'name', limit: PAGE, cursor }, signal });
    for (const row of answer.rows) if (row.subscription) found.set(row.subscription, row.states);
    if (!answer.next_cursor) break;
    cursor = answer.next_cursor;
  }
  return found;
}
