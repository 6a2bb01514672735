// Every page by the name that its route has.

import type { Component } from 'svelte';
import Consumers from './Consumers.svelte';
import Events from './Events.svelte';
import Settings from './Settings.svelte';
import Leases from './Leases.svelte';
import Dead from './Dead.svelte';
import Access from './Access.svelte';
import Message from './Message.svelte';
import Messages from './Messages.svelte';
import Operation from './Operation.svelte';
import Operations from './Operations.svelte';
import Nowhere from './Nowhere.svelte';
import Subscription from './Subscription.svelte';
import Subscriptions from './Subscriptions.svelte';
import Overview from './Overview.svelte';
import Queue from './Queue.svelte';
import Queues from './Queues.svelte';

type Page = Component<{ params: Record<string, string> }>;

export const pages: Record<string, Page> = {
  consumers: Consumers,
  events: Events,
  settings: Settings,
  leases: Leases,
  message: Message,
  messages: Messages,
  operation: Operation,
  operations: Operations,
  nowhere: Nowhere,
  overview: Overview,
  queue: Queue,
  queues: Queues,
  access: Access,
  dead: Dead,
  subscriptions: Subscriptions,
  subscription: Subscription,
};
