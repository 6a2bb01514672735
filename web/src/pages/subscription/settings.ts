// What is in force for the deliveries of a subscription, and who said so.

import type { Schema } from '../../lib/api/client';
import * as format from '../../lib/format';
import { t } from '../../texts';

export interface InForce {
  name: keyof typeof t.subscriptions.settings;
  value: string;
  /** Whether it was set here, or follows the server. */
  set: boolean;
}

type View = Schema['SubscriptionView'];
type Value = number | string | null | undefined;

const span = (value: Value) => (typeof value === 'number' ? format.span(value) : t.subscriptions.no_limit);
const plain = (value: Value) => (value === null || value === undefined ? t.subscriptions.no_limit : String(value));

/** Every setting with what is in force; nothing where deliveries are not its own. */
export function inForce(view: View): InForce[] {
  const { settings, retry } = view;
  if (!settings) return [];
  const own = view.breaker;
  const breaker = settings.breaker;
  const rows: InForce[] = [
    { name: 'max_attempts', value: plain(settings.retry.max_attempts), set: retry?.max_attempts !== undefined },
    { name: 'base_delay', value: span(settings.retry.base_delay_ms), set: retry?.base_delay_ms !== undefined },
    { name: 'multiplier', value: plain(settings.retry.multiplier), set: retry?.multiplier !== undefined },
    { name: 'max_delay', value: span(settings.retry.max_delay_ms), set: retry?.max_delay_ms !== undefined },
    { name: 'jitter', value: plain(settings.retry.jitter), set: retry?.jitter !== undefined },
    { name: 'timeout', value: format.span(settings.timeout_ms), set: view.timeout_ms !== undefined && view.timeout_ms !== null },
    { name: 'max_in_flight', value: format.count(settings.max_in_flight), set: view.max_in_flight !== undefined && view.max_in_flight !== null },
  ];
  if (!breaker) return [...rows, { name: 'breaker', value: t.subscriptions.breaker_modes.off, set: own !== undefined }];
  const part = (name: keyof Schema['Breaker']) => own !== undefined && own !== null && own[name] !== undefined && own[name] !== null;
  return [
    ...rows,
    { name: 'failure_share', value: format.share(breaker.failure_share ?? 0), set: part('failure_share') },
    { name: 'min_messages', value: plain(breaker.min_messages), set: part('min_messages') },
    { name: 'window', value: span(breaker.window_ms), set: part('window_ms') },
    { name: 'open_for', value: span(breaker.open_for_ms), set: part('open_for_ms') },
    { name: 'probe_timeout', value: span(breaker.probe_timeout_ms), set: part('probe_timeout_ms') },
  ];
}
