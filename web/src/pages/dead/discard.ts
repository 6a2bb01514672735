// Letting dead messages go, which nothing brings back.

import { confirm } from '../../lib/confirm.svelte';
import * as format from '../../lib/format';
import { notices } from '../../lib/notices.svelte';
import { to } from '../../lib/router.svelte';
import { visible } from '../../lib/visible';
import { t } from '../../texts';
import { type DeadFilter, toWords } from './filter';
import { countDiscard, startDiscard } from './redrive';

/** From so many on the name of the queue is typed first. */
export const TYPED_ABOVE = 100;

/** Asks whether the dead messages that match are to go. Counted anew before it is done; where that differs, it is asked again. */
export async function askDiscard(queue: string, filter: DeadFilter, before?: number): Promise<void> {
  const count = await countDiscard(queue, filter);
  const changed = before === undefined || before === count ? '' : ` ${t.dead.changed(format.count(before), format.count(count))}`;
  confirm.ask({
    title: t.dead.discard_title(queue),
    effect: t.dead.discard_effect + changed,
    count: () => Promise.resolve(count),
    filter: visible(`queue:${queue} state:dead ${toWords(filter)}`.trim()),
    undo: t.dead.discard_undo,
    ...(count > TYPED_ABOVE ? { typed: queue } : {}),
    verb: t.dead.discard,
    danger: true,
    run: async () => {
      if ((await countDiscard(queue, filter)) !== count) return askDiscard(queue, filter, count);
      const { id } = await startDiscard(queue, filter);
      notices.good(t.dead.discard_started(t.dead.messages(format.count(count), count)), { href: to('operations/:id', { id }), text: t.dead.to_operation });
    },
  });
}
