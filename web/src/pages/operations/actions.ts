// What can be done to an operation.

import { post } from '../../lib/api/client';
import { attempt, confirm } from '../../lib/confirm.svelte';
import * as format from '../../lib/format';
import { t } from '../../texts';
import type { Operation } from './progress';

export async function pause({ id }: Operation, done: () => void): Promise<void> {
  if (await attempt(() => post('/v1/operations/{id}/pause', { path: { id } }), t.operations.done.paused)) done();
}

export async function resume({ id }: Operation, done: () => void): Promise<void> {
  if (await attempt(() => post('/v1/operations/{id}/resume', { path: { id } }), t.operations.done.resumed)) done();
}

/** Asks whether it shall end. What it did stays done. */
export function askCancel(operation: Operation, done: () => void): void {
  const rest = Math.max(0, operation.total - operation.matched);
  confirm.ask({
    title: t.operations.cancel.title,
    effect: t.operations.cancel.effect(format.count(operation.applied), format.count(rest)),
    undo: t.operations.cancel.undo,
    verb: t.operations.cancel.verb,
    danger: true,
    run: async () => {
      await post('/v1/operations/{id}/cancel', { path: { id: operation.id } });
      done();
    },
    done: t.operations.done.cancelled,
  });
}
