// Where a message went whose lease has ended.

import type { Schema } from '../../lib/api/client';

export type Fate =
  /** It is ready again, and this attempt would be the next. */
  | { to: 'ready'; attempt: number }
  /** It waits for its next attempt. */
  | { to: 'delayed'; attempt: number; until: string }
  | { to: 'dead'; reason: string }
  /** It was acked, and the queue keeps it. */
  | { to: 'done' }
  /** It is with somebody again. */
  | { to: 'leased'; attempt: number; consumer: string }
  /** The lease goes on: the list did not reach that far. */
  | { to: 'same' }
  /** It is where the dead letters of this queue go. */
  | { to: 'moved'; queue: string }
  /** It is in this queue no more. */
  | { to: 'gone' };

/** Where a message went, by what the server says of it now, whose lease this was; `undefined` is a message that is not there. */
export function fateOf(lease: string, message: Schema['MessageView'] | undefined): Fate {
  if (message === undefined) return { to: 'gone' };
  const attempt = message.attempts + 1;
  if (message.state === 'ready') return { to: 'ready', attempt };
  if (message.state === 'delayed') return { to: 'delayed', attempt, until: message.visible_at };
  if (message.state === 'dead') return { to: 'dead', reason: message.dead_reason ?? '' };
  if (message.state === 'done') return { to: 'done' };
  if (message.lease?.lease_id === lease) return { to: 'same' };
  return { to: 'leased', attempt: message.attempts, consumer: message.lease?.consumer ?? '' };
}
