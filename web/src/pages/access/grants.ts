// Grants as they are typed and read: `manage:orders.*`.

import type { Schema, Sent } from '../../lib/api/client';

export const SCOPES = ['read', 'produce', 'consume', 'manage', 'admin'] as const;
export type Scope = (typeof SCOPES)[number];

export interface KeyForm {
  name: string;
  grants: { scope: Scope; queues: string }[];
  /** A time of the API, or nothing. */
  expires_at: string;
  queues_max: string;
  keys_max: string;
  consumers_max: string;
}

export const QUOTAS = ['queues_max', 'keys_max', 'consumers_max'] as const;
/** The most grants of a key. */
export const GRANTS_MAX = 64;

export function grantText(grants: readonly { scope: string; queues: string }[]): string {
  return grants.map((grant) => `${grant.scope}:${grant.queues}`).join(', ');
}

/** What is sent; quotas that are no numbers are what is wrong. */
export function requestOf(form: KeyForm): { body: Sent<Schema['CreateKeyRequest']>; wrong: (typeof QUOTAS)[number][] } {
  const wrong = QUOTAS.filter((quota) => !/^\d{0,9}$/.test(form[quota].trim()));
  const quotas = Object.fromEntries(QUOTAS.filter((quota) => form[quota].trim() !== '').map((quota) => [quota, Number(form[quota])]));
  const grants = form.grants.map(({ scope, queues }) => ({ scope, queues: queues.trim() })).filter(({ queues }) => queues !== '');
  return {
    body: { name: form.name.trim(), grants, ...(form.expires_at === '' ? {} : { expires_at: form.expires_at }), ...quotas },
    wrong,
  };
}
