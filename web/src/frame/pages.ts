// The pages of the rail, in their order, with the letter that leads there after `g`.

import type { IconName } from '../lib/parts/icons';
import type { Texts } from '../texts';

export interface RailPage {
  name: keyof Texts['pages'];
  path: string;
  letter: string;
  icon: IconName;
}

export const RAIL: readonly RailPage[] = [
  { name: 'overview', path: '', letter: 'o', icon: 'overview' },
  { name: 'queues', path: 'queues', letter: 'q', icon: 'queues' },
  { name: 'messages', path: 'messages', letter: 'm', icon: 'messages' },
  { name: 'leases', path: 'leases', letter: 'l', icon: 'leases' },
  { name: 'dead', path: 'dead', letter: 'd', icon: 'dead' },
  { name: 'operations', path: 'operations', letter: 'b', icon: 'operations' },
  { name: 'subscriptions', path: 'subscriptions', letter: 's', icon: 'subscriptions' },
  { name: 'consumers', path: 'consumers', letter: 'c', icon: 'consumers' },
  { name: 'events', path: 'events', letter: 'e', icon: 'events' },
  { name: 'access', path: 'access', letter: 'a', icon: 'access' },
  { name: 'settings', path: 'settings', letter: ',', icon: 'settings' },
];

/** The page of the rail that a page belongs to. */
export function railOf(page: string): string {
  const under: Record<string, string> = { queue: 'queues', message: 'messages', operation: 'operations', subscription: 'subscriptions' };
  return under[page] ?? page;
}
