// The life of a message, as far as it is kept: when it came, each attempt that did not succeed, and where it stands.

import type { Schema } from '../../lib/api/client';
import * as format from '../../lib/format';

type Message = Schema['MessageView'];
export type Attempt = Schema['AttemptView'];

/** How many attempts the server keeps with a message. */
export const KEPT_MAX = 20;

export type Step =
  | { kind: 'enqueued'; at: string }
  /** Attempts that the server does not know any more. */
  | { kind: 'forgotten' }
  | { kind: 'attempt'; attempt: Attempt; took: number }
  /** Its attempts were counted anew from here: it was dead and came back, or was moved, or nobody knows why. */
  | { kind: 'redriven' }
  | { kind: 'moved' }
  | { kind: 'anew' };

/** The steps of a message up to where it stands. */
export function steps(message: Message): Step[] {
  const all: Step[] = [{ kind: 'enqueued', at: message.created_at }];
  const [first] = message.failures;
  if (first && (first.attempt > 1 || message.failures.length >= KEPT_MAX)) all.push({ kind: 'forgotten' });
  let before = 0;
  for (const attempt of message.failures) {
    if (attempt.attempt <= before) all.push(anew(message));
    before = attempt.attempt;
    all.push({ kind: 'attempt', attempt, took: Math.max(0, format.ms(attempt.ended_at) - format.ms(attempt.leased_at)) });
  }
  // To be counted anew leaves no attempt behind: fewer attempts than the last one that failed mean that they were.
  const isFresh = message.state !== 'dead' && message.state !== 'done' && anew(message).kind !== 'anew';
  if (isFresh && before > 0 && message.attempts < before) all.push(anew(message));
  return all;
}

/** Why the attempts of a message were counted anew. A dead one that is moved to another queue is not redriven by that. */
function anew(message: Message): Step {
  if (message.redrives > 0) return { kind: 'redriven' };
  return message.origin_queue ? { kind: 'moved' } : { kind: 'anew' };
}

/** The next time at which something happens to a message by itself, of the server, in milliseconds. */
export function nextTime(message: Message, why: Schema['WhyView'] | undefined, now: number): number | null {
  const times = [
    message.state === 'delayed' ? message.visible_at : null,
    message.lease?.deadline,
    message.expires_at,
    why?.earliest,
    ...(why?.obstacles ?? []).map((obstacle) => obstacle.until),
  ];
  const ahead = times.filter((time) => typeof time === 'string').map(format.ms).filter((time) => time > now);
  return ahead.length > 0 ? Math.min(...ahead) : null;
}
