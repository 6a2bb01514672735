// Which consumers are shown, and in which order.

import type { Schema } from '../../lib/api/client';

type Row = Schema['ConsumerView'];

export const ORDERS = ['consumer', 'held', 'overdue', 'oldest', 'acked', 'failed', 'seen'] as const;
export interface Order {
  by: (typeof ORDERS)[number];
  desc: boolean;
}

const VALUE: Record<Order['by'], (row: Row) => number> = {
  consumer: () => 0,
  held: (row) => row.held,
  overdue: (row) => row.overdue,
  oldest: (row) => row.oldest_lease_ms ?? -1,
  acked: (row) => row.acked_per_s,
  failed: (row) => row.failed_per_s,
  // The one that was seen longest ago has the largest span since.
  seen: (row) => -Date.parse(row.last_seen),
};

function byName(one: Row, other: Row): number {
  return one.consumer < other.consumer ? -1 : one.consumer > other.consumer ? 1 : 0;
}

/** Those whose name has this in it, whatever the case, in an order; what is alike is in the order of the names. */
export function chosen(rows: readonly Row[], name: string, order: Order): Row[] {
  const wanted = name.trim().toLowerCase();
  const value = VALUE[order.by];
  const way = order.desc ? -1 : 1;
  const compare = (one: Row, other: Row) =>
    order.by === 'consumer' ? way * byName(one, other) : way * (value(one) - value(other)) || byName(one, other);
  return rows.filter((row) => row.consumer.toLowerCase().includes(wanted)).sort(compare);
}
