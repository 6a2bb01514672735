// Which subscriptions a key may do something with. Rights on a subscription are those on its queue.

import type { Grant } from '../../lib/api/access';
import type { Schema } from '../../lib/api/client';

/** What the queues of subscriptions begin with. */
export const PREFIX = 'bus.sub.';

/** The queue that stands for a subscription where rights are asked for. */
export function queueOf(id: string): string {
  return PREFIX + id;
}

/** Whether a pattern takes some name with that beginning. */
export function reaches(pattern: string, prefix: string): boolean {
  const star = pattern.indexOf('*');
  if (star < 0) return pattern.startsWith(prefix) && pattern.length > prefix.length;
  const begins = pattern.slice(0, star);
  return begins.startsWith(prefix) || prefix.startsWith(begins);
}

/** Whether somebody may create some subscription. */
export function mayCreate(who: Schema['WhoAmI'] | null): boolean {
  if (who === null) return false;
  if (!who.keys_needed) return true;
  const manages = (grant: Grant) => grant.scope === 'manage' || grant.scope === 'admin';
  return (who.key?.grants ?? []).some((grant) => manages(grant) && reaches(grant.queues, PREFIX));
}
