// What an operator may do to leases.

import { post } from '../../lib/api/client';
import { type Question, attempt, confirm } from '../../lib/confirm.svelte';
import * as format from '../../lib/format';
import { notices } from '../../lib/notices.svelte';
import { session } from '../../lib/session.svelte';
import { t } from '../../texts';
import { type Held, byQueue } from './book';
import { type Outcome, forEach, isLate, upTo } from './many';

/** How many leases one call ends. */
const ENDS = 1_000;

/** Gives the consumer of one lease as much time as the queue gives. */
export async function extend(held: Held): Promise<void> {
  await attempt(async () => {
    const { deadline } = await post('/v1/queues/{queue}/leases/{id}/extend', { path: pathOf(held), body: { lease_ms: null, lease_id: held.row.lease.lease_id } });
    notices.good(t.leases.extended_until(format.moment(deadline)));
  });
}

/** Gives the consumers of some leases more time: as much as their queues give, or as much as is said. */
export async function extendAll(leases: readonly Held[], leaseMs: number | null, tell: (outcome: Outcome) => void): Promise<void> {
  const call = (held: Held) => post('/v1/queues/{queue}/leases/{id}/extend', { path: pathOf(held), body: { lease_ms: leaseMs, lease_id: held.row.lease.lease_id } });
  const outcome = await forEach(leases, call, tell);
  notices.good(t.leases.extended(format.count(outcome.done), outcome.late));
}

/** Asks, and takes the messages back from their consumers. */
export function release(leases: readonly Held[], done: () => void): void {
  const [only] = leases;
  if (only === undefined) return;
  const call = (held: Held) => post('/v1/queues/{queue}/leases/{id}/release', { path: pathOf(held), body: { delay_ms: null, lease_id: held.row.lease.lease_id } });
  confirm.ask({
    title: leases.length === 1 ? t.leases.release_question_one : t.leases.release_question(format.count(leases.length)),
    effect: t.leases.release_effect,
    count: () => Promise.resolve(leases.length),
    filter: leases.length === 1 ? `queue:${only.row.queue} id:${only.row.id}` : t.leases.marked_of([...byQueue(leases)].map(([queue, some]) => [queue, some.length])),
    undo: t.leases.release_undo,
    verb: t.leases.release,
    danger: true,
    run: async () => {
      const outcome = await forEach(leases, call);
      notices.good(t.leases.released(format.count(outcome.done), outcome.late));
      done();
    },
  });
}

/** Whether the user may end what is overdue in one of these queues. */
export function mayEnd(overdue: ReadonlyMap<string, number>): boolean {
  return [...overdue.keys()].some((queue) => session.may('manage', queue));
}

/** Asks, and ends the leases that are overdue, as the sweeper would: as many as are shown, whatever has run out by then. */
export function endOverdue(overdue: ReadonlyMap<string, number>, done: () => void): void {
  const queues = [...overdue].filter(([queue]) => session.may('manage', queue));
  const question: Question = {
    title: t.leases.end_question,
    effect: t.leases.end_effect,
    count: () => Promise.resolve(queues.reduce((sum, [, count]) => sum + count, 0)),
    filter: queues.map(([queue, count]) => `queue:${queue} overdue (${format.count(count)})`).join(', '),
    undo: t.leases.end_undo,
    verb: t.leases.end_verb,
    danger: true,
    run: async () => {
      let ended = 0;
      for (const [queue, count] of queues) ended += await endIn(queue, count);
      notices.good(t.leases.ended_count(format.count(ended)));
      done();
    },
  };
  confirm.ask(question);
}

function endIn(queue: string, shown: number): Promise<number> {
  return upTo(shown, ENDS, async (limit) => {
    try {
      return (await post('/v1/queues/{queue}/requeue_expired', { path: { queue }, body: { limit, error: null } })).count;
    } catch (cause) {
      // The queue was deleted in the meantime, and its leases with it.
      if (isLate(cause)) return 0;
      throw cause;
    }
  });
}

function pathOf(held: Held): { queue: string; id: string } {
  return { queue: held.row.queue, id: held.row.id };
}
