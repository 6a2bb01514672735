// What is left of a lease.

import type { Held } from './book';

/** How a lease stands: it goes on, less than a quarter or a tenth of it is left, or the deadline has passed. */
export type Band = 'fine' | 'quarter' | 'tenth' | 'overdue';

export interface Left {
  ms: number;
  /** The share of it that is left, 0 to 1. */
  share: number;
  band: Band;
}

/** What is left of a lease at a time of the server. */
export function leftOf(held: Pick<Held, 'from' | 'deadline'>, now: number): Left {
  const ms = held.deadline - now;
  if (ms <= 0) return { ms: 0, share: 0, band: 'overdue' };
  const share = Math.min(1, ms / Math.max(1, held.deadline - held.from));
  return { ms, share, band: share < 0.1 ? 'tenth' : share < 0.25 ? 'quarter' : 'fine' };
}
