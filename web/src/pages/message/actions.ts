// What an operator does to one message.

import { type Schema, post, remove } from '../../lib/api/client';
import { attempt, confirm } from '../../lib/confirm.svelte';
import { notices } from '../../lib/notices.svelte';
import { to } from '../../lib/router.svelte';
import { session } from '../../lib/session.svelte';
import { t } from '../../texts';
import { EVERYTHING, print } from '../messages/filter';
import { toBody } from '../messages/address';

type Message = Schema['MessageView'];

/** What can be done to a message as it stands. */
export interface Possible {
  retry: boolean;
  reschedule: boolean;
  move: boolean;
  discard: boolean;
  lease: boolean;
}

/** What its state and the key of the user allow; what would be refused is not offered. */
export function possible(message: Message): Possible {
  const manages = session.may('manage', message.queue);
  const { state } = message;
  return {
    retry: manages && (state === 'delayed' || state === 'dead' || state === 'leased'),
    reschedule: manages && (state === 'delayed' || state === 'ready'),
    move: manages && state !== 'leased' && session.may('produce'),
    discard: manages,
    lease: manages && state === 'leased',
  };
}

const pathOf = ({ queue, id }: Message) => ({ queue, id });
/** The lease that a message is under. */
export const leaseOf = (message: Message) => message.lease?.lease_id ?? null;
const filterOf = (message: Message) => print({ ...EVERYTHING, id: [message.id] });

/** Makes a delayed message ready. */
export async function retryDelayed(message: Message): Promise<void> {
  const body = { delay_ms: 0, visible_at: null, priority: null };
  await attempt(() => post('/v1/queues/{queue}/messages/{id}/reschedule', { path: pathOf(message), body }), t.message.done.retried);
}

/** Brings a dead message back. */
export async function redrive(message: Message, reason: string): Promise<void> {
  const filter = toBody({ ...EVERYTHING, state: ['dead'], id: [message.id] }, 0);
  const body = { filter, dry_run: false, rate: null, by: session.who?.key?.name ?? '', reason };
  const begun = await post('/v1/queues/{queue}/dead/redrive', { path: { queue: message.queue }, body });
  const link = 'id' in begun ? { href: to('operations/:id', { id: begun.id }), text: t.messages_page.to_operation } : undefined;
  notices.good(t.message.done.redriven, link);
}

/** Asks whether the consumer shall lose a message, which is ready then. */
export function askRelease(message: Message, done: () => void): void {
  confirm.ask({
    title: t.message.release.title,
    effect: t.message.release.effect,
    filter: filterOf(message),
    undo: t.message.release.undo,
    verb: t.message.release.verb,
    run: async () => {
      await post('/v1/queues/{queue}/leases/{id}/release', { path: pathOf(message), body: { delay_ms: null, lease_id: leaseOf(message) } });
      done();
    },
    done: t.message.done.released,
  });
}

/** Asks whether a message shall be gone. A leased one goes only by force, which its consumer will notice. */
export function askDiscard(message: Message, done: () => void): void {
  const force = message.state === 'leased';
  confirm.ask({
    title: t.message.discard.title,
    effect: force ? t.message.discard.forced : t.message.discard.effect,
    count: () => Promise.resolve(1),
    filter: filterOf(message),
    undo: t.message.discard.undo,
    verb: t.message.discard.verb,
    danger: true,
    run: async () => {
      await remove('/v1/queues/{queue}/messages/{id}', { path: pathOf(message), query: { force } });
      done();
    },
    done: t.message.done.discarded,
  });
}

/** Gives the consumer of a lease more time; nothing is as much as the leases of the queue have. */
export async function extend(message: Message, lease_ms: number | null, lease_id: string | null): Promise<void> {
  await post('/v1/queues/{queue}/leases/{id}/extend', { path: pathOf(message), body: { lease_ms, lease_id } });
  notices.good(t.message.done.extended);
}

/** Another time, or another priority. */
export async function reschedule(message: Message, change: Schema['RescheduleRequest']): Promise<void> {
  await post('/v1/queues/{queue}/messages/{id}/reschedule', { path: pathOf(message), body: change });
  notices.good(t.message.done.rescheduled);
}

/** Takes a message to another queue. */
export async function move(message: Message, queue: string): Promise<void> {
  await post('/v1/queues/{queue}/messages/{id}/move', { path: pathOf(message), body: { queue } });
  const href = to('queues/:queue/messages/:id', { queue, id: message.id });
  notices.good(t.message.done.moved(queue), { href, text: t.message.done.moved_link });
}
