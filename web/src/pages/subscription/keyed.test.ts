import { expect, test } from 'vitest';
import type { Schema } from '../../lib/api/client';
import { keyed } from './keyed';

const attempt = (event: string, number: number) => ({ event, attempt: number, at: '2026-11-17T10:00:00.000Z' }) as Schema['DeliveryAttempt'];

test('attempts that are alike have names of their own, and keep them while newer ones come', () => {
  const before = keyed([attempt('a', 1), attempt('b', 1), attempt('a', 1)]);
  expect(new Set(before.map(({ key }) => key)).size).toBe(3);
  const after = keyed([attempt('a', 1), ...before.map(({ one }) => one)]);
  expect(after.slice(1)).toEqual(before);
  expect(new Set(after.map(({ key }) => key)).size).toBe(4);
});
