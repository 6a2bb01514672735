// What can be done to queues, wherever they are shown.

import { get, post, remove } from '../../lib/api/client';
import { attempt, confirm } from '../../lib/confirm.svelte';
import * as format from '../../lib/format';
import { notices } from '../../lib/notices.svelte';
import { to } from '../../lib/router.svelte';
import { t } from '../../texts';

/** Pauses queues until they are resumed, or resumes them. Answers whether that worked for all. */
export async function setPaused(queues: readonly string[], paused: boolean): Promise<boolean> {
  const one = queues.length === 1 ? queues[0] : undefined;
  const count = format.count(queues.length);
  const done = paused
    ? (one !== undefined ? t.queues.is_paused(one) : t.queues.are_paused(count))
    : (one !== undefined ? t.queues.is_resumed(one) : t.queues.are_resumed(count));
  return attempt(async () => {
    for (const queue of queues) {
      if (paused) await post('/v1/queues/{queue}/pause', { path: { queue }, body: {} });
      else await post('/v1/queues/{queue}/resume', { path: { queue }, body: {} });
    }
  }, done);
}

/** The name of one, or how many there are. */
function named(queues: readonly string[]): string {
  return queues.length === 1 && queues[0] !== undefined ? queues[0] : t.queues.several(format.count(queues.length));
}

async function sum(queues: readonly string[], count: (queue: string) => Promise<number>): Promise<number> {
  let all = 0;
  for (const queue of queues) all += await count(queue);
  return all;
}

async function purgeable(queue: string): Promise<number> {
  const found = await post('/v1/queues/{queue}/purge', { path: { queue }, body: { dry_run: true } });
  return found.matched;
}

/** Asks whether queues should be purged, and does it: one operation for each. */
export function askPurge(queues: readonly string[], done: () => void): void {
  const what = named(queues);
  const count = format.count(queues.length);
  confirm.ask({
    title: t.queues.purge_title(what),
    effect: t.queues.purge_effect,
    count: () => sum(queues, purgeable),
    filter: queues.join(', '),
    undo: t.queues.purge_undo,
    typed: queues.length === 1 ? what : t.queues.type_purge(count),
    verb: t.queues.purge,
    danger: true,
    run: async () => {
      let last: string | undefined;
      for (const queue of queues) {
        const started = await post('/v1/queues/{queue}/purge', { path: { queue }, body: {} });
        if ('id' in started) last = started.id;
      }
      const href = queues.length === 1 && last !== undefined ? to('operations/:id', { id: last }) : to('operations');
      notices.good(t.queues.purge_started(what), { href, text: t.queues.operation });
      done();
    },
  });
}

async function messages(queue: string): Promise<number> {
  const { states } = await get('/v1/queues/{queue}/stats', { path: { queue } });
  return states.ready + states.delayed + states.leased + states.dead + states.done;
}

/**
 * Asks whether queues should be deleted, and does it. One that had nothing in it when it was asked is deleted only if that is still
 * so: nobody agreed to lose what came since. `around` is told while it is done.
 */
export function askDelete(queues: readonly string[], done: () => void, around: (work: () => Promise<void>) => Promise<void> = (work) => work()): void {
  const what = named(queues);
  const held = new Map<string, number>();
  confirm.ask({
    title: t.queues.delete_title(what),
    effect: t.queues.delete_effect,
    count: () =>
      sum(queues, async (queue) => {
        const count = await messages(queue);
        held.set(queue, count);
        return count;
      }),
    filter: queues.join(', '),
    undo: t.queues.delete_undo,
    typed: queues.length === 1 ? what : t.queues.type_delete(format.count(queues.length)),
    verb: t.queues.delete,
    danger: true,
    run: async () => {
      await around(async () => {
        for (const queue of queues) {
          await remove('/v1/queues/{queue}', { path: { queue }, query: { force: (held.get(queue) ?? 0) > 0 } });
        }
      });
      done();
    },
    done: t.queues.deleted(what),
  });
}
