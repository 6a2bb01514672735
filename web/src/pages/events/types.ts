// The types of events, in the order of a message's life, each with its picture and colour.

import type { IconName } from '../../lib/parts/icons';

export interface EventType {
  type: string;
  icon: IconName;
  tone: string;
}

export const TYPES: readonly EventType[] = [
  { type: 'enqueue', icon: 'ready', tone: 'ready' },
  { type: 'lease', icon: 'leased', tone: 'leased' },
  { type: 'ack', icon: 'done', tone: 'done' },
  { type: 'nack', icon: 'warning', tone: 'warn' },
  { type: 'requeue', icon: 'retry', tone: 'ready' },
  { type: 'move_to_dlq', icon: 'dead', tone: 'dead' },
  { type: 'breaker', icon: 'open', tone: 'warn' },
  { type: 'queue', icon: 'queues', tone: '' },
  { type: 'subscription', icon: 'subscriptions', tone: '' },
];
