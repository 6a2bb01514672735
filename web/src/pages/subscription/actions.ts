// What can be done to a subscription, and the question before it.

import { type Schema, post, remove } from '../../lib/api/client';
import { attempt, confirm } from '../../lib/confirm.svelte';
import { notices } from '../../lib/notices.svelte';
import { router, to } from '../../lib/router.svelte';
import { t } from '../../texts';

type View = Schema['SubscriptionView'];
type Deed = '/v1/subscriptions/{id}/pause' | '/v1/subscriptions/{id}/resume' | '/v1/subscriptions/{id}/disable' | '/v1/subscriptions/{id}/enable';

const doIt = (deed: Deed, id: string) => () => post(deed, { path: { id } });

/** Pausing loses nothing, and going on is what somebody wants who presses it: neither is asked about. */
export function pause(id: string): Promise<boolean> {
  return attempt(doIt('/v1/subscriptions/{id}/pause', id), t.subscriptions.done.paused(id));
}

export function resume(id: string): Promise<boolean> {
  return attempt(doIt('/v1/subscriptions/{id}/resume', id), t.subscriptions.done.resumed(id));
}

export function enable(id: string): Promise<boolean> {
  return attempt(doIt('/v1/subscriptions/{id}/enable', id), t.subscriptions.done.enabled(id));
}

export function askDisable(id: string, done: () => void): void {
  confirm.ask({
    title: t.subscriptions.disable_title(id),
    effect: t.subscriptions.disable_effect,
    undo: t.subscriptions.disable_undo,
    verb: t.subscriptions.disable,
    danger: true,
    run: async () => {
      await doIt('/v1/subscriptions/{id}/disable', id)();
      done();
    },
    done: t.subscriptions.done.disabled(id),
  });
}

/** What waits and what is dead goes with it, where the queue is its own. */
export function askDelete(view: View, count: (() => Promise<number>) | null): void {
  const { id } = view;
  confirm.ask({
    title: t.subscriptions.delete_title(id),
    effect: count ? t.subscriptions.delete_effect : t.subscriptions.delete_effect_queue,
    ...(count ? { count } : {}),
    undo: t.subscriptions.delete_undo,
    typed: id,
    verb: t.subscriptions.delete,
    danger: true,
    run: async () => {
      await remove('/v1/subscriptions/{id}', { path: { id } });
      router.go(to('subscriptions'));
    },
    done: t.subscriptions.done.deleted(id),
  });
}

export function askTrip(id: string, done: () => void): void {
  confirm.ask({
    title: t.subscriptions.trip_title(id),
    effect: t.subscriptions.trip_effect,
    undo: t.subscriptions.trip_undo,
    verb: t.subscriptions.trip,
    danger: true,
    run: async () => {
      await post('/v1/subscriptions/{id}/breaker/trip', { path: { id } });
      done();
    },
    done: t.subscriptions.done.tripped,
  });
}

export function reset(id: string): Promise<boolean> {
  return attempt(() => post('/v1/subscriptions/{id}/breaker/reset', { path: { id } }), t.subscriptions.done.reset);
}

/** Sends an event once more, and says in words what that came to. */
export function askResend(id: string, event: string, done: () => void): void {
  confirm.ask({
    title: t.subscriptions.resend_title,
    effect: t.subscriptions.resend_effect(event, id),
    undo: t.subscriptions.resend_undo,
    verb: t.subscriptions.resend,
    run: async () => {
      await resend(id, event);
      done();
    },
  });
}

async function resend(id: string, event: string): Promise<void> {
  const { how } = await post('/v1/subscriptions/{id}/resend', { path: { id }, body: { event } });
  notices.good(t.subscriptions.resent[how]);
}
