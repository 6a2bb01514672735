import { describe, expect, test } from 'vitest';
import { dealtWith, isOver, rateOf, remaining, takes } from './progress';

const operation = (more: object = {}) => ({
  state: 'running' as const,
  applied: 25,
  refused: 5,
  matched: 30,
  total: 100,
  started_at: '2026-11-17T10:00:00.000Z',
  updated_at: '2026-11-17T10:00:03.000Z',
  ...more,
});

describe('an operation', () => {
  test('has dealt with what it changed and with what it had to leave', () => {
    expect(dealtWith(operation())).toEqual({ done: 30, total: 100 });
  });

  test('is never further than the end, though more match than when it began', () => {
    expect(dealtWith(operation({ applied: 120 }))).toEqual({ done: 125, total: 125 });
  });

  test('takes as long as its rate says, or as its speed so far', () => {
    expect(remaining(operation({ rate: 10 }))).toBe(7_000);
    expect(remaining(operation())).toBe(7_000);
  });

  test('takes nobody knows how long before it has begun, and no time once it stands', () => {
    expect(remaining(operation({ applied: 0, refused: 0 }))).toBeNull();
    expect(remaining(operation({ updated_at: '2026-11-17T10:00:00.000Z' }))).toBeNull();
    expect(remaining(operation({ state: 'paused', rate: 10 }))).toBeNull();
    expect(remaining(operation({ state: 'done' }))).toBeNull();
  });

  test('is over when it is done, cancelled or failed', () => {
    expect(['running', 'paused', 'done', 'cancelled', 'failed'].map((state) => isOver({ state: state as 'done' }))).toEqual([
      false, false, true, true, true,
    ]);
  });
});

test('a rate is a whole number above nothing', () => {
  expect(['50', '0', '', '-1', '1.5', 'many', '007'].map(rateOf)).toEqual([50, null, null, null, null, null, 7]);
});

test('a started second is a whole one', () => {
  expect(takes(101, 50)).toBe(3_000);
  expect(takes(0, 50)).toBe(0);
});
