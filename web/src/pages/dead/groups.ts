// Failure groups of one queue or of all, in one form.

import { type Schema, get } from '../../lib/api/client';

export interface Group {
  queue: string;
  subscription?: string | null | undefined;
  fingerprint: string;
  sample: string;
  messages: number;
  first: string;
  last: string;
  deaths: readonly number[];
}

export interface Groups {
  groups: readonly Group[];
  /** Whether these are all there are. */
  complete: boolean;
}

/** How many groups are asked for. */
export const GROUPS = 500;

export async function loadGroups(queue: string, signal: AbortSignal): Promise<Groups> {
  if (queue === '') return get('/v1/dead/groups', { query: { limit: GROUPS }, signal });
  return inQueue(queue, await get('/v1/queues/{queue}/dead/groups', { path: { queue }, query: { limit: GROUPS }, signal }));
}

/** The groups of one queue, which the server tells without its name. */
export function inQueue(queue: string, found: Schema['FailureGroups']): Groups {
  return { groups: found.groups.map((group) => ({ ...group, queue })), complete: found.groups.length < GROUPS };
}

export function keyOf(group: Group): string {
  return `${group.queue}\n${group.fingerprint}`;
}
