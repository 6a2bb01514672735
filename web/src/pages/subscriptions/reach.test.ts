import { expect, test } from 'vitest';
import type { Schema } from '../../lib/api/client';
import { PREFIX, mayCreate, reaches } from './reach';

test('a pattern reaches subscriptions where some name of theirs fits it', () => {
  const patterns = ['*', 'bus.*', 'bus.sub.*', 'bus.sub.orders-*', 'bus.sub.shop', 'b*x'];
  expect(patterns.filter((pattern) => reaches(pattern, PREFIX))).toEqual(patterns);
  expect(['mail', 'mail*', 'bus.sub.', 'bus.seq.*', 'orders.*'].filter((pattern) => reaches(pattern, PREFIX))).toEqual([]);
});

test('who manages some subscription may create one, and nobody else', () => {
  const who = (scope: string, queues: string) => ({ keys_needed: true, key: { grants: [{ scope, queues }] } }) as unknown as Schema['WhoAmI'];
  expect(mayCreate(who('manage', 'bus.sub.orders-*'))).toBe(true);
  expect(mayCreate(who('admin', '*'))).toBe(true);
  expect(mayCreate(who('manage', 'mail'))).toBe(false);
  expect(mayCreate(who('read', '*'))).toBe(false);
  expect(mayCreate({ keys_needed: false })).toBe(true);
  expect(mayCreate(null)).toBe(false);
});
