// Which dead messages are meant: as the address says it, as the API takes it, and as a person reads it. One thing in three forms, so
// that what is shown is what is sent.

import type { Schema, Sent } from '../../lib/api/client';
import type { Query } from '../../lib/router.svelte';

/** Why a message may be dead. */
export const REASONS = ['max_attempts', 'buried', 'expired_ttl', 'max_deliveries', 'not_reached'] as const;
export type Reason = (typeof REASONS)[number];

/** The most ids that a filter takes. */
export const IDS_MAX = 100;

/** Parts of a filter, each empty where it says nothing. */
export interface DeadFilter {
  fingerprint: string;
  reason: string;
  type: string;
  source: string;
  attempts_min: string;
  attempts_max: string;
  created_after: string;
  created_before: string;
  error: string;
  /** Ids, divided by spaces or commas. */
  id: string;
}

const PARTS = [
  'fingerprint', 'reason', 'type', 'source', 'attempts_min', 'attempts_max', 'created_after', 'created_before', 'error', 'id',
] as const satisfies readonly (keyof DeadFilter)[];

/** A filter that takes everything. */
export const EVERYTHING: DeadFilter = {
  fingerprint: '', reason: '', type: '', source: '', attempts_min: '', attempts_max: '', created_after: '', created_before: '', error: '', id: '',
};

/** What each part that is not just any text must look like. */
const READS = {
  reason: (value: string) => REASONS.some((reason) => reason === value),
  attempts_min: isCount,
  attempts_max: isCount,
  created_after: isTime,
  created_before: isTime,
} as const;

function isCount(value: string): boolean {
  return /^\d{1,9}$/.test(value);
}

function isTime(value: string): boolean {
  return !Number.isNaN(Date.parse(value));
}

/** A part of an address that cannot be read. */
export interface Unread {
  part: keyof typeof READS;
  value: string;
}

/**
 * What the address says. A part that makes no sense, such as a number of attempts that is none, is not in the filter, which then takes
 * more than what was meant: nothing may be done by it while there are problems.
 */
export function fromQuery(query: URLSearchParams): { filter: DeadFilter; problems: Unread[] } {
  const filter = { ...EVERYTHING };
  for (const part of PARTS) filter[part] = query.get(part) ?? '';
  const problems: Unread[] = [];
  for (const part of Object.keys(READS) as Unread['part'][]) {
    const value = filter[part];
    if (value === '' || READS[part](value)) continue;
    problems.push({ part, value });
    filter[part] = '';
  }
  return { filter, problems };
}

/** The same for the address; what says nothing is taken out of it. */
export function toQuery(filter: DeadFilter): Query {
  return { ...filter };
}

export function idsOf(filter: DeadFilter): string[] {
  return filter.id.split(/[\s,]+/).filter((id) => id !== '');
}

/** Whether it takes everything. */
export function isEverything(filter: DeadFilter): boolean {
  return PARTS.every((part) => filter[part] === '');
}

/** The filter as the API takes it. */
export function toBody(filter: DeadFilter): Sent<Schema['FilterBody']> {
  const body: Sent<Schema['FilterBody']> = {};
  const ids = idsOf(filter);
  if (ids.length > 0) body.ids = ids;
  if (filter.fingerprint !== '') body.fingerprint = filter.fingerprint;
  if (filter.reason !== '') body.reasons = [filter.reason as Reason];
  if (filter.type !== '') body.types = [filter.type];
  if (filter.source !== '') body.sources = [filter.source];
  if (filter.attempts_min !== '') body.attempts_min = Number(filter.attempts_min);
  if (filter.attempts_max !== '') body.attempts_max = Number(filter.attempts_max);
  if (filter.created_after !== '') body.created_after = filter.created_after;
  if (filter.created_before !== '') body.created_before = filter.created_before;
  if (filter.error !== '') body.error = filter.error;
  return body;
}

/** Whether a list can be asked for it: lists divide types and sources by commas, so one with a comma cannot be said there. */
export function canBeListed(filter: DeadFilter): boolean {
  return !filter.type.includes(',') && !filter.source.includes(',');
}

/** The filter for the list of messages, whose address knows ages and no moments; nothing where it would show something else. */
export function toMessages(filter: DeadFilter): Query | null {
  return filter.created_after === '' && filter.created_before === '' && canBeListed(filter) ? { state: 'dead', ...toList(filter) } : null;
}

/** The filter as a list takes it. */
export function toList(filter: DeadFilter): Query {
  return { ...filter, id: idsOf(filter).join(',') };
}

/** The filter as a person reads it, every part that says something, in the words of the API. */
export function toWords(filter: DeadFilter): string {
  const said: string[] = [];
  const add = (name: string, value: string, relation = ':') => {
    if (value !== '') said.push(name + relation + quoted(value));
  };
  add('fingerprint', filter.fingerprint);
  add('reason', filter.reason);
  add('type', filter.type);
  add('source', filter.source);
  add('attempts', filter.attempts_min, '>=');
  add('attempts', filter.attempts_max, '<=');
  add('created', filter.created_after, '>=');
  add('created', filter.created_before, '<=');
  add('error', filter.error);
  add('id', idsOf(filter).join(','));
  return said.join(' ');
}

/** A word as it is, and anything else in quotes, so that it is seen where it ends. */
function quoted(value: string): string {
  return /^[\w.,:+-]+$/.test(value) ? value : JSON.stringify(value);
}
