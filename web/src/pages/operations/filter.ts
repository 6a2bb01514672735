// The filter that an operation carries out, for people: the words of the filter of messages, and moments where that has ages.

import type { Schema } from '../../lib/api/client';
import { quote } from '../messages/filter';

type Body = Partial<Schema['FilterBody']>;

const LISTS = [
  ['states', 'state'], ['types', 'type'], ['sources', 'source'], ['keys', 'key'], ['consumers', 'consumer'], ['reasons', 'reason'], ['ids', 'id'],
] as const;
const BOUNDS = [
  ['attempts_min', 'attempts>='], ['attempts_max', 'attempts<='], ['created_after', 'created>='], ['created_before', 'created<='],
] as const;

/** All that it says, and nothing where it says nothing. */
export function wordsOf(body: Body): string {
  const said: string[] = [];
  for (const [part, name] of LISTS) {
    const values = body[part] ?? [];
    if (values.length > 0) said.push(`${name}:${values.map(quote).join(',')}`);
  }
  for (const [part, name] of BOUNDS) {
    const value = body[part] ?? null;
    if (value !== null) said.push(`${name}${value}`);
  }
  if (typeof body.error === 'string') said.push(`error:${quote(body.error)}`);
  if (typeof body.fingerprint === 'string') said.push(`fingerprint:${body.fingerprint}`);
  return said.join(' ');
}

/** The id before all others: an operation for which nothing matched ends there. */
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';

/** The last message that an operation is about; nothing where it has none. */
export function lastOf({ until }: Pick<Schema['OperationView'], 'until'>): string | null {
  return until === undefined || until === BEFORE_ALL ? null : until;
}
