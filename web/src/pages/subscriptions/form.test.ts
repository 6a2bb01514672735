import { describe, expect, test } from 'vitest';
import type { Schema } from '../../lib/api/client';
import { EMPTY, canBeTyped, formOf, readHeaders, settingsOf, writeHeaders } from './form';

const view = (more: object): Schema['SubscriptionView'] =>
  ({
    id: 'shop', pattern: 'orders.*', target: { kind: 'webhook', url: 'https://example.com/', format: 'binary' }, state: 'active',
    created_at: '2026-11-17T10:00:00.000Z', order: 1, version: 1, queue: 'bus.sub.shop', ...more,
  }) as Schema['SubscriptionView'];

describe('what is set of a subscription', () => {
  test('is sent as it was set, where nothing is changed', () => {
    const set = {
      filter: { tier: ['gold', 'a,b'], region: ['eu'] },
      retry: { max_attempts: null, base_delay_ms: 100, multiplier: 1.5, max_delay_ms: null, jitter: 'none' },
      timeout_ms: 1_500,
      max_in_flight: 4,
      breaker: { failure_share: 0.25, min_messages: 8, window_ms: 60_000, open_for_ms: 5_000 },
    };
    const { settings, target, wrong } = settingsOf(formOf(view({ ...set, target: { kind: 'webhook', url: 'https://example.com/', format: 'binary', disable_after_ms: 60_000 } })), true);
    expect(wrong).toEqual({});
    expect(settings).toEqual({ pattern: 'orders.*', ...set });
    expect(target).toEqual({ url: 'https://example.com/', format: 'binary', disable_after_ms: 60_000 });
  });

  test('is not sent where it follows the server', () => {
    expect(settingsOf({ ...EMPTY, pattern: ' orders.* ' }, false)).toEqual({ settings: { pattern: 'orders.*' }, wrong: {} });
  });

  test('tells nothing from not set: a breaker that is off, an endpoint that is never switched off', () => {
    const form = formOf(view({ breaker: null }));
    expect([form.breaker, form.disable_after]).toEqual(['off', 'none']);
    const { settings, target } = settingsOf(form, true);
    expect(settings.breaker).toBeNull();
    expect(target?.disable_after_ms).toBeNull();
    expect('breaker' in settingsOf(formOf(view({})), true).settings).toBe(false);
  });

  test('is refused where it is no number, no span, or missing', () => {
    const form = { ...EMPTY, max_attempts: 'many', base_delay: 'soon', timeout: 'none', headers: 'tier', breaker: 'own' as const, failure_share: 'half' };
    expect(Object.keys(settingsOf(form, true).wrong).sort()).toEqual(['base_delay', 'failure_share', 'headers', 'max_attempts', 'pattern', 'timeout', 'url']);
  });
});

describe('headers', () => {
  test('are typed one a line, and may have any value', () => {
    const filter = { tier: ['gold', 'x=y', ''], __proto__x: ['1'] };
    expect(readHeaders(writeHeaders(filter))).toEqual(filter);
    expect(canBeTyped(filter)).toBe(true);
  });

  test('with a line end in a value cannot be typed', () => {
    expect(canBeTyped({ tier: ['gold\nsilver=1'] })).toBe(false);
  });

  test('of a strange name change nothing else', () => {
    expect(Object.keys(readHeaders('__proto__=1') ?? {})).toEqual(['__proto__']);
    expect(readHeaders('=1')).toBeNull();
  });
});
