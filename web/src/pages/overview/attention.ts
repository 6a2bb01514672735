// Where the messages are that something is about.

import type { Schema } from '../../lib/api/client';
import * as format from '../../lib/format';
import { to } from '../../lib/router.svelte';
import { t } from '../../texts';

export interface List {
  href: string;
  text: string;
}

/** The list that the count of an item stands for; nothing where it counts nothing. A number leads to a list of as many, a word to more. */
export function listOf(item: Schema['AttentionView']): List | null {
  const { count, kind, queue } = item;
  if (count === undefined || count === null || count === 0 || queue === undefined || queue === null) return null;
  const text = t.overview.messages(format.count(count));
  // No list knows when a message died.
  if (kind === 'dead_rising') return { href: to('dead', {}, { queue }), text: t.overview.all_dead };
  // Those that are overdue are its first.
  if (kind === 'overdue') return { href: to('leases', {}, { queue }), text: t.overview.all_leases };
  // Their leases are over: they are in any state now.
  if (kind === 'leases_expiring') return { href: to('messages', {}, { queue }), text: t.overview.all_messages };
  if (kind === 'paused' || kind === 'breaker_open') return { href: to('messages', {}, { queue, state: 'ready,delayed' }), text };
  const waits = kind === 'no_consumers' || kind === 'oldest_ready';
  return waits ? { href: to('messages', {}, { queue, state: 'ready' }), text } : null;
}
