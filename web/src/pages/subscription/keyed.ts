// A name for each attempt. An event that is redriven begins again with its first attempt, maybe in the same millisecond.

import type { Schema } from '../../lib/api/client';

type Attempt = Schema['DeliveryAttempt'];

/** Each attempt with a name of its own, which it keeps while newer ones come: like ones are counted from the oldest. */
export function keyed(newestFirst: readonly Attempt[]): { key: string; one: Attempt }[] {
  const seen = new Map<string, number>();
  const named = newestFirst.toReversed().map((one) => {
    const name = `${one.event} ${one.attempt} ${one.at}`;
    const before = seen.get(name) ?? 0;
    seen.set(name, before + 1);
    return { key: `${name} ${before}`, one };
  });
  return named.reverse();
}
