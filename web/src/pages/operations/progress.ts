// How far an operation is, in numbers that the server wrote down.

import type { Schema } from '../../lib/api/client';
import * as format from '../../lib/format';

export type Operation = Schema['OperationView'];

export function isEnded(operation: Pick<Operation, 'state'>): boolean {
  return operation.state === 'done' || operation.state === 'cancelled' || operation.state === 'failed';
}

/** How much is done of how much. More may match than did when it was started, and it is never more than all. */
export function extent(operation: Operation): { value: number; max: number } {
  const max = Math.max(operation.total, operation.matched);
  // What was done while nothing matched is done all the same.
  return operation.state === 'done' ? { value: Math.max(1, max), max: Math.max(1, max) } : { value: operation.matched, max: Math.max(1, max) };
}

/** How fast it was so far, a second; nothing where that cannot be said yet. */
export function speed(operation: Operation): number | null {
  const ms = format.ms(operation.updated_at) - format.ms(operation.started_at);
  return ms < 1_000 || operation.matched === 0 ? null : operation.matched / (ms / 1_000);
}

/** How long it takes yet, in milliseconds, where it is under way and that can be said. */
export function left(operation: Operation): number | null {
  if (operation.state !== 'running') return null;
  const perSecond = Math.min(speed(operation) ?? Number.POSITIVE_INFINITY, operation.rate ?? Number.POSITIVE_INFINITY);
  const rest = Math.max(0, operation.total - operation.matched);
  return Number.isFinite(perSecond) && perSecond > 0 ? (rest / perSecond) * 1_000 : null;
}
