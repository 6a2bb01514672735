import { describe, expect, it } from 'vitest';
import { type Form, configOf, formOf, placeOf, rebase } from './form';
import type { Config } from './settings';

const IN_FORCE: Config = {
  lease_timeout_ms: 30_000,
  max_lease_ms: 43_200_000,
  max_deliveries: null,
  retry: { max_attempts: 3, base_delay_ms: 1_000, multiplier: 2, max_delay_ms: 30_000, jitter: '0.1' },
  retry_share: 0.2,
  retry_lane: 'shared',
  max_retries_in_flight: null,
  overdue_backoff: false,
  breaker: null,
  dead_letter_to: null,
  retain_done: null,
  retain_dead: null,
  dedup_window_ms: 300_000,
  max_waiting: null,
  weights: {},
};
const FULL: Config = {
  lease_timeout_ms: 90_000,
  max_deliveries: 7,
  retry: { max_attempts: null, max_delay_ms: null, jitter: 'full' },
  retry_share: 0.5,
  retry_lane: 'separate',
  overdue_backoff: true,
  breaker: { window_ms: 60_000, min_messages: 4, failure_share: 0.5, open_for_ms: 30_000, probe_timeout_ms: 30_000 },
  dead_letter_to: 'graveyard',
  retain_done: { age_ms: 604_800_000, count: 1_000 },
  retain_dead: null,
  max_waiting: 10_000,
  weights: { gold: 5 },
};

const typed = (form: Form, key: keyof Form, value: string): Form => ({ ...form, [key]: { mode: 'value', parts: { value } } });

describe('the form', () => {
  it('sends what it was made from, whatever that is', () => {
    expect(configOf(formOf(FULL, IN_FORCE), FULL)).toEqual({ config: FULL, wrong: {} });
    expect(configOf(formOf({}, IN_FORCE))).toEqual({ config: {}, wrong: {} });
  });

  it('tells the default from a value that is the same', () => {
    const form = formOf({}, IN_FORCE);
    expect(form.lease_timeout_ms).toEqual({ mode: 'default', parts: { value: '30s' } });
    const set = { ...form, lease_timeout_ms: { ...form.lease_timeout_ms, mode: 'value' as const } };
    expect(configOf(set).config).toEqual({ lease_timeout_ms: 30_000 });
  });

  it('tells nothing from the default', () => {
    const form: Form = { ...formOf({}, IN_FORCE), 'retry.max_attempts': { mode: 'nothing', parts: { value: '3' } } };
    expect(configOf(form).config).toEqual({ retry: { max_attempts: null } });
  });

  it('says where what is typed cannot be read', () => {
    let form = typed(formOf({}, IN_FORCE), 'lease_timeout_ms', '30');
    form = typed(form, 'max_waiting', '-1');
    form = typed(form, 'retry.multiplier', 'two');
    form = typed(form, 'dead_letter_to', ' ');
    form.breaker = { mode: 'value', parts: { min_messages: 'four' } };
    expect(Object.keys(configOf(form).wrong).sort()).toEqual([
      'breaker.min_messages',
      'dead_letter_to',
      'lease_timeout_ms',
      'max_waiting',
      'retry.multiplier',
    ]);
  });
});

describe('rebase', () => {
  it('follows others where nothing was typed, and keeps what was', () => {
    const before = formOf({}, IN_FORCE);
    const mine = typed(typed(before, 'lease_timeout_ms', '45s'), 'max_waiting', '5');
    const now = formOf({ lease_timeout_ms: 60_000, retry: { max_attempts: 9 } }, IN_FORCE);
    const { form, changed } = rebase(mine, before, now);
    expect(changed.sort()).toEqual(['lease_timeout_ms', 'retry.max_attempts']);
    expect(configOf(form).config).toEqual({ lease_timeout_ms: 45_000, max_waiting: 5, retry: { max_attempts: 9 } });
  });
});

describe('placeOf', () => {
  it('knows a setting by every name that the server has for it', () => {
    expect(placeOf('lease_timeout')).toBe('lease_timeout_ms');
    expect(placeOf('retry.base_delay')).toBe('retry.base_delay_ms');
    expect(placeOf('/config/retry/max_attempts')).toBe('retry.max_attempts');
    expect(placeOf('/retry/jitter')).toBe('retry.jitter');
    expect(placeOf('breaker.window')).toBe('breaker.window_ms');
    expect(placeOf('/config/retain_done/age_ms')).toBe('retain_done.age_ms');
    expect(placeOf('name')).toBeUndefined();
  });
});
