// The pages of the rail, in their order, with the letters that lead there after `g`.

import { session } from '../lib/session.svelte';
import type { IconName } from '../lib/parts/icons';
import type { Texts } from '../texts';

export interface RailPage {
  name: keyof Texts['pages'];
  path: string;
  letters: readonly string[];
  icon: IconName;
}

const RAIL: readonly RailPage[] = [
  { name: 'overview', path: '', letters: ['o'], icon: 'overview' },
  { name: 'queues', path: 'queues', letters: ['q'], icon: 'queues' },
  { name: 'messages', path: 'messages', letters: ['m', 'j'], icon: 'messages' },
  { name: 'leases', path: 'leases', letters: ['l'], icon: 'leases' },
  { name: 'dead', path: 'dead', letters: ['d'], icon: 'dead' },
  { name: 'operations', path: 'operations', letters: ['b'], icon: 'operations' },
  { name: 'subscriptions', path: 'subscriptions', letters: ['s'], icon: 'subscriptions' },
  { name: 'consumers', path: 'consumers', letters: ['c', 'w'], icon: 'consumers' },
  { name: 'events', path: 'events', letters: ['e'], icon: 'events' },
  { name: 'access', path: 'access', letters: ['a'], icon: 'access' },
  { name: 'settings', path: 'settings', letters: [','], icon: 'settings' },
];

/** Those that would not only be refused: no other is offered, wherever pages are. */
export function offered(): readonly RailPage[] {
  return RAIL.filter((page) => page.name !== 'access' || session.may('admin'));
}

/** The page of the rail that a page belongs to. */
export function railOf(page: string): string {
  const under: Record<string, string> = { queue: 'queues', message: 'messages', operation: 'operations', subscription: 'subscriptions' };
  return under[page] ?? page;
}
