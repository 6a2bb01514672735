// All operations, the newest first. The API tells the oldest first, so all of them are read; those at the beginning that have come to
// their end do not change any more, and are read once.

import { get } from '../../lib/api/client';
import { Resource } from '../../lib/resource.svelte';
import { type Operation, isEnded } from './progress';

/** How many one call asks for, and how many are kept: the newest. */
const PAGE = 1_000;
export const OPERATIONS_MAX = 20_000;

/** Adds what was read to what has ended, and says up to where nothing changes any more. */
export function settled(ended: readonly Operation[], read: readonly Operation[]): readonly Operation[] {
  const running = read.findIndex((operation) => !isEnded(operation));
  return [...ended, ...(running < 0 ? read : read.slice(0, running))].slice(-OPERATIONS_MAX);
}

/** Made while a component is. */
export function operationList(): Resource<readonly Operation[]> {
  let ended: readonly Operation[] = [];

  async function load(signal: AbortSignal): Promise<readonly Operation[]> {
    const read: Operation[] = [];
    let cursor = ended.at(-1)?.id;
    do {
      const page = await get('/v1/operations', { query: { limit: PAGE, cursor }, signal });
      read.push(...page.operations);
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
    const all = [...ended, ...read].slice(-OPERATIONS_MAX);
    ended = settled(ended, read);
    return all.reverse();
  }

  // What operations do, and that they began or ended, is told as these.
  return new Resource({ load, watch: () => ({ types: ['queue', 'requeue', 'enqueue'] }) });
}
