// How far an operation is, and how long it will still take.

import type { Schema } from '../../lib/api/client';

type Operation = Pick<Schema['OperationView'], 'state' | 'applied' | 'refused' | 'matched' | 'total' | 'started_at' | 'updated_at'> & {
  rate?: number | null;
};

/** How many were dealt with, of how many. More may match by now than when it was started. */
export function dealtWith(operation: Operation): { done: number; total: number } {
  const done = operation.applied + operation.refused;
  return { done, total: Math.max(operation.total, done) };
}

/** How long it will still take, in milliseconds; nothing where that cannot be known. */
export function remaining(operation: Operation): number | null {
  if (operation.state !== 'running') return null;
  const { done, total } = dealtWith(operation);
  const left = total - done;
  if (operation.rate) return Math.ceil(left / operation.rate) * 1_000;
  const took = Date.parse(operation.updated_at) - Date.parse(operation.started_at);
  if (done === 0 || took <= 0) return null;
  return Math.ceil((left * took) / done);
}

/** How long a redrive of so many takes at a rate, in milliseconds. */
export function takes(count: number, rate: number): number {
  return Math.ceil(count / rate) * 1_000;
}

/** A rate as somebody typed it; nothing where it is none. */
export function rateOf(typed: string): number | null {
  const rate = /^\d{1,9}$/.test(typed) ? Number(typed) : 0;
  return rate >= 1 ? rate : null;
}

/** Whether it will not change any more. */
export function isOver(operation: Pick<Operation, 'state'>): boolean {
  return ['done', 'cancelled', 'failed'].includes(operation.state);
}
