// Work on many messages: counted by a dry run, asked about, and begun as an operation.

import { type Schema, post } from '../../lib/api/client';
import { Problem } from '../../lib/api/problem';
import { clock } from '../../lib/clock.svelte';
import { confirm } from '../../lib/confirm.svelte';
import { notices } from '../../lib/notices.svelte';
import { to } from '../../lib/router.svelte';
import { session } from '../../lib/session.svelte';
import { t } from '../../texts';
import { type FilterBody, toBody } from './address';
import { type Filter, print } from './filter';

export type Verb = 'redrive' | 'discard' | 'move';

/** What is to be done, and to which messages. */
export interface Wanted {
  verb: Verb;
  queue: string;
  filter: Filter;
  /** How many messages a second at most. */
  rate: number | null;
  /** Why, for a redrive. */
  reason: string;
  /** Whether leased messages are discarded, too. */
  force: boolean;
  /** Where messages are moved. */
  target: string;
}

type Answer = Schema['Matched'] | Schema['OperationView'];

function send(wanted: Wanted, filter: FilterBody, dry_run: boolean): Promise<Answer> {
  const { queue, rate, target, force, reason } = wanted;
  const path = { queue };
  if (wanted.verb === 'move') return post('/v1/queues/{queue}/messages/move', { path, body: { filter, dry_run, rate, queue: target } });
  if (wanted.verb === 'discard') return post('/v1/queues/{queue}/messages/discard', { path, body: { filter, dry_run, rate, force } });
  const by = session.who?.key?.name ?? '';
  // Only what is dead can be redriven; saying so keeps the server from refusing what else is in the filter.
  const dead = { ...filter, states: ['dead' as const] };
  return post('/v1/queues/{queue}/dead/redrive', { path, body: { filter: dead, dry_run, rate, by, reason } });
}

async function begin(wanted: Wanted, filter: FilterBody): Promise<void> {
  const begun = await send(wanted, filter, false);
  if (!('id' in begun)) throw new Problem(0, 'PAGE_ERROR', t.messages_page.not_begun);
  const link = { href: to('operations/:id', { id: begun.id }), text: t.messages_page.to_operation };
  notices.good(t.messages_page.begun[wanted.verb](begun.total), link);
}

/** How many messages match, in any state. Asking needs the right to change them. */
export async function countAll(queue: string, filter: Filter): Promise<number> {
  const body = { filter: toBody(filter, clock.exact()), dry_run: true, rate: null, force: true };
  const { matched } = await post('/v1/queues/{queue}/messages/discard', { path: { queue }, body });
  return matched;
}

/** The filter of a redrive, word for word; nothing where it can mean no dead message. */
export function forRedrive(filter: Filter): Filter | null {
  if (filter.state.length > 0 && !filter.state.includes('dead')) return null;
  return { ...filter, state: ['dead'] };
}

/** Asks whether it shall be done, with the number that a dry run of the same filter found, and begins it. */
export function askFor(wanted: Wanted, begun: () => void): void {
  const said = wanted.verb === 'redrive' ? (forRedrive(wanted.filter) ?? wanted.filter) : wanted.filter;
  // An age is counted back from now, once: what is counted and what is done must be the same.
  const filter = toBody(said, clock.exact());
  const words = t.messages_page.ask[wanted.verb];
  confirm.ask({
    title: words.title(wanted.queue, wanted.target),
    effect: wanted.force ? words.forced : words.effect,
    count: async () => {
      const { matched } = await send(wanted, filter, true);
      return matched;
    },
    filter: print(said),
    undo: words.undo,
    verb: words.verb,
    danger: wanted.verb === 'discard',
    run: async () => {
      await begin(wanted, filter);
      begun();
    },
  });
}
