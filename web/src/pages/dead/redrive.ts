// What the page asks of the server about dead messages: how many match, what they look like, and to bring them back or let them go.

import { type Schema, get, post } from '../../lib/api/client';
import { session } from '../../lib/session.svelte';
import { t } from '../../texts';
import { type DeadFilter, canBeListed, isEverything, toBody, toList } from './filter';

/** Where dead messages lie: in a queue, or wherever a subscription has some. */
export interface Place {
  queue: string;
  subscription?: string | undefined;
}

/** How many of them are looked at before anything is done. */
export const SAMPLES = 20;

/** Who asks, for the history of each message. */
export function asker(): string {
  return session.who?.key?.name ?? t.dead.nobody;
}

/** How many a redrive would bring back: counted by the server, and exact. */
export async function countRedrive(place: Place, filter: DeadFilter): Promise<number> {
  const body = { filter: toBody(filter), dry_run: true };
  const answer =
    place.subscription === undefined
      ? await post('/v1/queues/{queue}/dead/redrive', { path: { queue: place.queue }, body })
      : await post('/v1/subscriptions/{id}/dead/redrive', { path: { id: place.subscription }, body });
  return (answer as Schema['Matched']).matched;
}

/** Brings them back. For a subscription that is one operation for each queue where something of it died. */
export async function startRedrive(place: Place, filter: DeadFilter, rate: number | null, reason: string): Promise<Schema['OperationView'][]> {
  const body = { filter: toBody(filter), by: asker(), reason, ...(rate === null ? {} : { rate }) };
  if (place.subscription === undefined) {
    const started = await post('/v1/queues/{queue}/dead/redrive', { path: { queue: place.queue }, body });
    return [started as Schema['OperationView']];
  }
  const started = await post('/v1/subscriptions/{id}/dead/redrive', { path: { id: place.subscription }, body });
  return (started as Schema['OperationPage']).operations;
}

/** How many a discard would take away. */
export async function countDiscard(queue: string, filter: DeadFilter): Promise<number> {
  const answer = await post('/v1/queues/{queue}/dead/discard', { path: { queue }, body: { filter: toBody(filter), dry_run: true } });
  return (answer as Schema['Matched']).matched;
}

export async function startDiscard(queue: string, filter: DeadFilter): Promise<Schema['OperationView']> {
  const started = await post('/v1/queues/{queue}/dead/discard', { path: { queue }, body: { filter: toBody(filter) } });
  return started as Schema['OperationView'];
}

/** A dead message, and why it is dead where it was looked for. */
export interface Sample {
  message: Schema['MessageView'];
  reason: string;
}

/** The newest that match; nothing where a list cannot be asked for them. */
export async function samples(place: Place, filter: DeadFilter, signal: AbortSignal): Promise<Sample[] | null> {
  if (place.subscription !== undefined && isEverything(filter)) {
    const page = await get('/v1/subscriptions/{id}/dead', { path: { id: place.subscription }, query: { limit: SAMPLES }, signal });
    return page.dead;
  }
  if (!canBeListed(filter)) return null;
  const query = { ...toList(filter), newest_first: true, bodies: false, limit: SAMPLES };
  const page = await get('/v1/queues/{queue}/dead', { path: { queue: place.queue }, query: query as object, signal });
  return page.messages.map((message) => ({ message, reason: message.dead_reason ?? '' }));
}
