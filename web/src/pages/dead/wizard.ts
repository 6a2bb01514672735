// The steps of the redrive wizard, and what of it is in the address: a reload, or a colleague who is sent the link, sees the same.

import { type Query, router } from '../../lib/router.svelte';

export const STEPS = ['filter', 'preview', 'rate', 'start'] as const;
export type Step = (typeof STEPS)[number] | 'progress';

/** Which step is shown; nothing where the wizard is closed. */
export function stepOf(query: URLSearchParams): Step | null {
  const said = query.get('redrive');
  if (said === 'progress') return operationsOf(query).length > 0 ? 'progress' : null;
  return STEPS.find((step) => step === said) ?? null;
}

/** The operations that were started. */
export function operationsOf(query: URLSearchParams): string[] {
  return (query.get('operation') ?? '').split(',').filter((id) => /^[0-9a-fA-F-]{1,36}$/.test(id));
}

/** What is not in the address once the wizard is closed. */
const CLOSED: Query = { redrive: null, rate: null, why: null, operation: null };

export function openWizard(more: Query = {}): void {
  router.set({ ...CLOSED, ...more, redrive: more.redrive ?? 'filter' }, 'push');
}

export function closeWizard(): void {
  router.set(CLOSED);
}
