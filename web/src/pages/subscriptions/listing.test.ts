import { expect, test, vi } from 'vitest';
import type { Schema } from '../../lib/api/client';

vi.mock('../../lib/api/client', () => ({ get: () => undefined }));
const { matches } = await import('./listing');

const one = { id: 'shop', pattern: 'orders.*', state: 'paused', target: { kind: 'webhook', url: 'https://Example.com/hooks' } } as Schema['SubscriptionView'];
const wanted = (more: object) => ({ text: '', state: '', kind: '', ...more });

test('a subscription is found by a part of its id, its pattern or its target, whatever the case', () => {
  expect(['', 'HOP', 'orders', 'example.com'].map((text) => matches(one, wanted({ text })))).toEqual([true, true, true, true]);
  expect(matches(one, wanted({ text: 'mail' }))).toBe(false);
});

test('every part of the filter must hold', () => {
  expect(matches(one, wanted({ state: 'paused', kind: 'webhook', text: 'shop' }))).toBe(true);
  expect(matches(one, wanted({ state: 'active' }))).toBe(false);
  expect(matches(one, wanted({ kind: 'queue', text: 'shop' }))).toBe(false);
});
