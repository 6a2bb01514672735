// What is set of a subscription, as it is typed. What is left empty is not set, and follows the server; `none` is set to nothing.

import type { Schema, Sent } from '../../lib/api/client';
import { t } from '../../texts';
import { parseSpan, writeSpan } from '../queue/span';

/** Everything that is typed, as text. */
export interface SubscriptionForm {
  pattern: string;
  /** A header in each line, `name=value`; the same name again is another value. */
  headers: string;
  max_attempts: string;
  base_delay: string;
  multiplier: string;
  max_delay: string;
  jitter: string;
  timeout: string;
  max_in_flight: string;
  breaker: 'default' | 'off' | 'own';
  failure_share: string;
  min_messages: string;
  window: string;
  open_for: string;
  probe_timeout: string;
  url: string;
  format: string;
  disable_after: string;
}

/** What is sent beside the target. */
export type Settings = Sent<Omit<Schema['UpdateSubscriptionRequest'], 'target'>>;
export type WebhookTarget = Sent<Schema['TargetUpdate']>;

/** What is wrong, by field. */
export type Wrong = Partial<Record<keyof SubscriptionForm, string>>;

/** The word for a value that is set to nothing. */
const NONE = 'none';

export const EMPTY: SubscriptionForm = {
  pattern: '', headers: '', max_attempts: '', base_delay: '', multiplier: '', max_delay: '', jitter: '', timeout: '', max_in_flight: '',
  breaker: 'default', failure_share: '', min_messages: '', window: '', open_for: '', probe_timeout: '', url: '', format: 'structured', disable_after: '',
};

type Value = number | string | null | undefined;
const spanText = (value: Value) => (value === null ? NONE : typeof value === 'number' ? writeSpan(value) : '');
const text = (value: Value) => (value === null ? NONE : value === undefined ? '' : String(value));

/** What is set of a subscription, for typing. */
export function formOf(view: Schema['SubscriptionView']): SubscriptionForm {
  const { retry, breaker, target } = view;
  return {
    ...EMPTY,
    pattern: view.pattern,
    headers: writeHeaders(view.filter ?? {}),
    max_attempts: text(retry?.max_attempts),
    base_delay: spanText(retry?.base_delay_ms),
    multiplier: text(retry?.multiplier),
    max_delay: spanText(retry?.max_delay_ms),
    jitter: text(retry?.jitter),
    timeout: spanText(view.timeout_ms ?? undefined),
    max_in_flight: text(view.max_in_flight ?? undefined),
    breaker: breaker === undefined ? 'default' : breaker === null ? 'off' : 'own',
    failure_share: text(breaker?.failure_share ?? undefined),
    min_messages: text(breaker?.min_messages ?? undefined),
    window: spanText(breaker?.window_ms ?? undefined),
    open_for: spanText(breaker?.open_for_ms ?? undefined),
    probe_timeout: spanText(breaker?.probe_timeout_ms ?? undefined),
    url: target.url ?? '',
    format: target.format ?? 'structured',
    disable_after: target.kind === 'webhook' ? spanText(target.disable_after_ms ?? null) : '',
  };
}

export function writeHeaders(filter: Record<string, readonly string[]>): string {
  return Object.entries(filter)
    .flatMap(([name, values]) => values.map((value) => `${name}=${value}`))
    .join('\n');
}

/** The headers that are typed; nothing where a line is none. */
export function readHeaders(typed: string): Record<string, string[]> | null {
  const filter: Record<string, string[]> = Object.create(null) as Record<string, string[]>;
  for (const row of typed.split('\n')) {
    if (row.trim() === '') continue;
    const equals = row.indexOf('=');
    if (equals < 1) return null;
    (filter[row.slice(0, equals).trim()] ??= []).push(row.slice(equals + 1));
  }
  return { ...filter };
}

/** Whether a filter can be typed: a value with a line end in it cannot, and is left as it is. */
export function canBeTyped(filter: Record<string, readonly string[]>): boolean {
  return JSON.stringify(readHeaders(writeHeaders(filter))) === JSON.stringify(filter);
}

/** Reads fields one by one, and keeps what is wrong with each. */
class Reader {
  readonly wrong: Wrong = {};
  constructor(readonly form: SubscriptionForm) {}

  #read<T>(field: keyof SubscriptionForm, none: boolean, parse: (typed: string) => T | null, about: string): T | null | undefined {
    const typed = this.form[field].trim();
    if (typed === '') return undefined;
    if (none && typed === NONE) return null;
    const value = parse(typed);
    if (value === null) this.wrong[field] = about;
    return value ?? undefined;
  }

  span(field: keyof SubscriptionForm, none = false): number | null | undefined {
    return this.#read(field, none, parseSpan, t.subscriptions.wrong.span);
  }

  number(field: keyof SubscriptionForm, none = false): number | null | undefined {
    return this.#read(field, none, (typed) => (/^\d+(\.\d+)?$/.test(typed) ? Number(typed) : null), t.subscriptions.wrong.number);
  }

  word(field: keyof SubscriptionForm): string | undefined {
    return this.form[field].trim() || undefined;
  }
}

/** Without what says nothing. */
function said<T extends object>(values: T): T {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as T;
}

/** What is sent, or what is wrong. */
export function settingsOf(form: SubscriptionForm, webhook: boolean): { settings: Settings; target?: WebhookTarget; wrong: Wrong } {
  const read = new Reader(form);
  const filter = readHeaders(form.headers);
  if (filter === null) read.wrong.headers = t.subscriptions.wrong.headers;
  if (form.pattern.trim() === '') read.wrong.pattern = t.subscriptions.wrong.empty;
  const retry = said({
    max_attempts: read.number('max_attempts', true),
    base_delay_ms: read.span('base_delay') ?? undefined,
    multiplier: read.number('multiplier') ?? undefined,
    max_delay_ms: read.span('max_delay', true),
    jitter: read.word('jitter'),
  });
  const own = () =>
    said({
      failure_share: read.number('failure_share') ?? undefined,
      min_messages: read.number('min_messages') ?? undefined,
      window_ms: read.span('window') ?? undefined,
      open_for_ms: read.span('open_for') ?? undefined,
      probe_timeout_ms: read.span('probe_timeout') ?? undefined,
    });
  const settings: Settings = said({
    pattern: form.pattern.trim(),
    filter: filter === null || Object.keys(filter).length === 0 ? undefined : filter,
    retry: Object.keys(retry).length === 0 ? undefined : retry,
    timeout_ms: read.span('timeout') ?? undefined,
    max_in_flight: read.number('max_in_flight') ?? undefined,
    breaker: form.breaker === 'default' ? undefined : form.breaker === 'off' ? null : own(),
  });
  if (!webhook) return { settings, wrong: read.wrong };
  if (form.url.trim() === '') read.wrong.url = t.subscriptions.wrong.empty;
  const target = said({ url: form.url.trim(), format: form.format as 'structured', disable_after_ms: read.span('disable_after', true) });
  return { settings, target, wrong: read.wrong };
}
