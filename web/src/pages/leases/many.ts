// One call for each of many, some at a time.

import { Problem } from '../../lib/api/problem';

/** How many calls are under way at a time: the server has others to answer. */
const AT_ONCE = 6;

export interface Outcome {
  /** How many calls did what they should. */
  done: number;
  /** How many came too late: the lease had ended. */
  late: number;
}

/**
 * Makes a call for each, and counts. A lease that has ended in the meantime is no reason to stop; anything else is, with what was done
 * so far.
 */
export async function forEach<T>(all: readonly T[], call: (one: T) => Promise<unknown>, tell: (outcome: Outcome) => void = () => undefined): Promise<Outcome> {
  const outcome: Outcome = { done: 0, late: 0 };
  let next = 0;
  let failed: unknown;
  const worker = async () => {
    while (next < all.length && failed === undefined) {
      const one = all[next++] as T;
      try {
        await call(one);
        outcome.done++;
      } catch (cause) {
        if (isLate(cause)) outcome.late++;
        else failed ??= cause;
      }
      tell({ ...outcome });
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, all.length) }, worker));
  if (failed !== undefined) throw failed;
  return outcome;
}

/**
 * Calls as often as it takes for so many, and never for more than are still missing. `call` is told how many it may do, and answers how
 * many it did: fewer means that there are none left.
 */
export async function upTo(count: number, most: number, call: (limit: number) => Promise<number>): Promise<number> {
  let done = 0;
  while (done < count) {
    const limit = Math.min(most, count - done);
    const did = await call(limit);
    done += did;
    if (did < limit) break;
  }
  return done;
}

/** Whether a refusal only says that the lease is not there any more. */
export function isLate(cause: unknown): boolean {
  return cause instanceof Problem && (cause.code === 'NOT_FOUND' || cause.code === 'LEASE_LOST');
}
