// A filter in the address of the page, and as the API takes it.

import type { Schema } from '../../lib/api/client';
import type { paths } from '../../lib/api/schema';
import type { Query } from '../../lib/router.svelte';
import { type Filter, LISTS, type Parsed, parse, quote } from './filter';
import { printSpan } from './span';

type ListQuery = NonNullable<paths['/v1/queues/{queue}/messages']['get']['parameters']['query']>;
export type FilterBody = Schema['FilterBody'];

/** A list as one word. A list of nothing but the empty text has a comma, because an empty word would be no word at all. */
function joined(values: readonly string[]): string | null {
  return values.length === 1 && values[0] === '' ? ',' : values.length > 0 ? values.join(',') : null;
}

/** What the address says of a filter; what is null is taken out of it. */
export function toAddress(filter: Filter): Query {
  const said: Query = Object.fromEntries(LISTS.map((field) => [field, joined(filter[field])]));
  return {
    ...said,
    attempts_min: filter.attemptsMin,
    attempts_max: filter.attemptsMax,
    age_min: filter.ageMin === null ? null : printSpan(filter.ageMin),
    age_max: filter.ageMax === null ? null : printSpan(filter.ageMax),
    error: filter.error,
    fingerprint: filter.fingerprint,
  };
}

/** The filter that an address says, and the line that it is. It is read like one that was typed: an address may be wrong, too. */
export function fromAddress(query: URLSearchParams): Parsed & { line: string } {
  const said: string[] = [];
  const say = (name: string, before: string) => {
    const value = query.get(name);
    if (value) said.push(before + quote(value));
  };
  for (const field of LISTS) {
    const value = query.get(field);
    if (value) said.push(`${field}:${[...new Set(value.split(','))].map(quote).join(',')}`);
  }
  say('attempts_min', 'attempts>=');
  say('attempts_max', 'attempts<=');
  say('age_min', 'age>');
  say('age_max', 'age<');
  say('error', 'error:');
  say('fingerprint', 'fingerprint:');
  const line = said.join(' ');
  return { ...parse(line), line };
}

function ago(now: number, ms: number): string {
  return new Date(Math.max(0, now - ms)).toISOString();
}

/** The parameters of a listing. Ages are counted back from the server's time, whose clock has stamped the messages. */
export function toQuery(filter: Filter, now: number): ListQuery {
  // A list of one empty text would vanish from the address; twice the same is once.
  const list = <T extends string>(values: readonly T[]) =>
    values.length === 0 ? {} : { of: values.length === 1 && values[0] === '' ? [...values, ...values] : [...values] };
  return {
    state: list(filter.state).of,
    id: list(filter.id).of,
    type: list(filter.type).of,
    source: list(filter.source).of,
    key: list(filter.key).of,
    consumer: list(filter.consumer).of,
    reason: list(filter.reason).of,
    fingerprint: filter.fingerprint ?? undefined,
    attempts_min: filter.attemptsMin ?? undefined,
    attempts_max: filter.attemptsMax ?? undefined,
    created_before: filter.ageMin === null ? undefined : ago(now, filter.ageMin),
    created_after: filter.ageMax === null ? undefined : ago(now, filter.ageMax),
    error: filter.error ?? undefined,
  };
}

/** The filter of an operation. */
export function toBody(filter: Filter, now: number): FilterBody {
  return {
    states: [...filter.state],
    ids: [...filter.id],
    types: [...filter.type],
    sources: [...filter.source],
    keys: [...filter.key],
    consumers: [...filter.consumer],
    reasons: [...filter.reason],
    fingerprint: filter.fingerprint,
    attempts_min: filter.attemptsMin,
    attempts_max: filter.attemptsMax,
    created_before: filter.ageMin === null ? null : ago(now, filter.ageMin),
    created_after: filter.ageMax === null ? null : ago(now, filter.ageMax),
    error: filter.error,
  };
}
