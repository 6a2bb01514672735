// Letting dead messages go, which nothing brings back.

import { confirm } from '../../lib/confirm.svelte';
import * as format from '../../lib/format';
import { notices } from '../../lib/notices.svelte';
import { to } from '../../lib/router.svelte';
import { t } from '../../texts';
import { type DeadFilter, toWords } from './filter';
import { countDiscard, startDiscard } from './redrive';

/** From so many on the name of the queue is typed first. */
export const TYPED_ABOVE = 100;

/** Asks whether the dead messages that match are to go. */
export function askDiscard(queue: string, filter: DeadFilter): void {
  confirm.ask({
    title: t.dead.discard_title(queue),
    effect: t.dead.discard_effect,
    count: () => countDiscard(queue, filter),
    filter: `queue:${queue} state:dead ${toWords(filter)}`.trim(),
    undo: t.dead.discard_undo,
    typed: (count) => (count > TYPED_ABOVE ? queue : undefined),
    verb: t.dead.discard,
    danger: true,
    run: async () => {
      const { id, total } = await startDiscard(queue, filter);
      notices.good(t.dead.discard_started(t.dead.messages(format.count(total), total)), { href: to('operations/:id', { id }), text: t.dead.to_operation });
    },
  });
}
