// The settings of a queue: what each one is, what it is set to, and who said so.

import type { Schema, Sent } from '../../lib/api/client';
import * as format from '../../lib/format';
import { t } from '../../texts';
import { parseSpan, writeSpan } from './span';

/** Settings, of which any may be left out. */
export type Config = Sent<Schema['QueueConfig']>;

/** What a setting is, and so how it is typed and shown. */
export type Kind = 'span' | 'count' | 'number' | 'share' | 'jitter' | 'lane' | 'switch' | 'queue' | 'breaker' | 'retention';

export interface Setting {
  /** Its name in the API; what lies inside another has a dot. */
  key: SettingKey;
  kind: Kind;
  /** Whether it may be set to nothing, which is something else than not to set it. */
  nothing?: boolean;
  /** Whether a message may say something else for itself. */
  overridden?: boolean;
}

export type SettingKey = keyof typeof t.queue.settings;
export type Group = keyof typeof t.queue.groups;

/** Every setting, in the order in which they are shown. The weights of fairness keys have an editor of their own. */
export const GROUPS: readonly { name: Group; settings: readonly Setting[] }[] = [
  {
    name: 'retries',
    settings: [
      { key: 'retry.max_attempts', kind: 'count', nothing: true, overridden: true },
      { key: 'retry.base_delay_ms', kind: 'span' },
      { key: 'retry.multiplier', kind: 'number' },
      { key: 'retry.max_delay_ms', kind: 'span', nothing: true },
      { key: 'retry.jitter', kind: 'jitter' },
    ],
  },
  {
    name: 'lanes',
    settings: [
      { key: 'retry_share', kind: 'share' },
      { key: 'retry_lane', kind: 'lane' },
      { key: 'max_retries_in_flight', kind: 'count', nothing: true },
    ],
  },
  {
    name: 'leases',
    settings: [
      { key: 'lease_timeout_ms', kind: 'span', overridden: true },
      { key: 'max_lease_ms', kind: 'span' },
      { key: 'overdue_backoff', kind: 'switch' },
      { key: 'max_deliveries', kind: 'count', nothing: true },
    ],
  },
  {
    name: 'dead',
    settings: [
      { key: 'dead_letter_to', kind: 'queue', nothing: true },
      { key: 'retain_dead', kind: 'retention', nothing: true },
      { key: 'retain_done', kind: 'retention', nothing: true },
    ],
  },
  {
    name: 'guards',
    settings: [
      { key: 'breaker', kind: 'breaker', nothing: true },
      { key: 'max_waiting', kind: 'count', nothing: true },
      { key: 'dedup_window_ms', kind: 'span' },
    ],
  },
];

export const SETTINGS: readonly Setting[] = GROUPS.flatMap((group) => group.settings);

/** What is set: nothing where it is left out, `null` where it is set to nothing. */
export function valueOf(config: Config, key: string): unknown {
  return key.split('.').reduce<unknown>((inside, name) => (inside as Record<string, unknown> | null | undefined)?.[name], config);
}

/** Sets something, and makes what it lies inside of. */
export function put(config: Record<string, unknown>, key: string, value: unknown): void {
  const names = key.split('.');
  const last = names.pop() ?? key;
  let inside = config;
  for (const name of names) inside = (inside[name] ??= {}) as Record<string, unknown>;
  inside[last] = value;
}

export type Origin = 'queue' | 'server' | 'built_in';

/** Who says what a setting is. */
export function originOf(view: Pick<Schema['QueueView'], 'set' | 'configured'>, key: string): Origin {
  if (view.set.includes(key)) return 'queue';
  return view.configured.includes(key) ? 'server' : 'built_in';
}

/** A setting in force, for people. */
export function shownOf(setting: Setting, value: unknown): string {
  if (value === null || value === undefined) return nothingOf(setting.key);
  switch (setting.kind) {
    case 'span':
      return exact(value as number);
    case 'count':
      return format.count(value as number);
    case 'share':
      return format.share(value as number);
    case 'switch':
      return value ? t.queue.yes : t.queue.no;
    case 'jitter':
      return jitter(String(value));
    case 'breaker':
      return breaker(value as Sent<Schema['Breaker']>);
    case 'retention':
      return retention(value as Sent<Schema['Retention']>);
    default:
      return String(value);
  }
}

/** What nothing means for a setting. */
export function nothingOf(key: SettingKey): string {
  return (t.queue.nothing as Partial<Record<SettingKey, string>>)[key] ?? t.queue.no_limit;
}

/** A span that is set: rounding is for what was measured. */
export function exact(ms: number): string {
  const shown = format.span(ms);
  return parseSpan(shown) === ms ? shown : writeSpan(ms);
}

function jitter(value: string): string {
  if (value === 'none' || value === 'full') return t.queue.jitter[value];
  return t.queue.jitter.share(format.share(Number(value)));
}

function breaker({ window_ms, min_messages, failure_share, open_for_ms }: Sent<Schema['Breaker']>): string {
  return t.queue.breaker_is(
    format.share(failure_share ?? 0),
    format.count(min_messages ?? 0),
    exact(window_ms ?? 0),
    exact(open_for_ms ?? 0),
  );
}

function retention({ age_ms, count }: Sent<Schema['Retention']>): string {
  const parts: string[] = [];
  if (age_ms !== null && age_ms !== undefined) parts.push(exact(age_ms));
  if (count !== null && count !== undefined) parts.push(t.queue.at_most(format.count(count)));
  return parts.length === 0 ? t.queue.for_ever : parts.join(', ');
}
