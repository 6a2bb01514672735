import { describe, expect, it } from 'vitest';
import type { Schema } from '../../lib/api/client';
import { chosen } from './list';

function row(consumer: string, more: Partial<Schema['ConsumerView']> = {}): Schema['ConsumerView'] {
  return {
    consumer, queues: [], held: 0, overdue: 0, leased: 0, acked: 0, failed: 0, expired: 0, released: 0,
    acked_per_s: 0, failed_per_s: 0, first_seen: '2026-01-01T00:00:00.000Z', last_seen: '2026-01-01T00:00:00.000Z', here: true, ...more,
  };
}

const names = (rows: Schema['ConsumerView'][]) => rows.map((one) => one.consumer);

describe('chosen', () => {
  const rows = [row('w-2', { held: 3 }), row('W-10', { held: 7, oldest_lease_ms: 5 }), row('mail', { held: 3 })];

  it('finds by a part of the name, whatever the case', () => {
    expect(names(chosen(rows, ' w- ', { by: 'consumer', desc: false }))).toEqual(['W-10', 'w-2']);
    expect(chosen(rows, '.*', { by: 'consumer', desc: false })).toEqual([]);
  });

  it('sorts, and what is alike by name, either way', () => {
    expect(names(chosen(rows, '', { by: 'held', desc: true }))).toEqual(['W-10', 'mail', 'w-2']);
    expect(names(chosen(rows, '', { by: 'held', desc: false }))).toEqual(['mail', 'w-2', 'W-10']);
    expect(names(chosen(rows, '', { by: 'oldest', desc: true }))).toEqual(['W-10', 'mail', 'w-2']);
    expect(names(chosen(rows, '', { by: 'consumer', desc: true }))).toEqual(['w-2', 'mail', 'W-10']);
  });
});
