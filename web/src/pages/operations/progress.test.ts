import { describe, expect, it } from 'vitest';
import { type Operation, extent, left, speed } from './progress';

const operation = (more: Partial<Operation>): Operation => ({
  id: '', kind: 'redrive', queue: 'q', state: 'running', total: 100, matched: 40, applied: 40, refused: 0,
  started_at: '2026-01-01T00:00:00Z', updated_at: '2026-01-01T00:00:20Z', ...more,
});

describe('an operation', () => {
  it('is never more than all of it', () => {
    expect(extent(operation({}))).toEqual({ value: 40, max: 100 });
    expect(extent(operation({ matched: 120 }))).toEqual({ value: 120, max: 120 });
    expect(extent(operation({ total: 0, matched: 0, state: 'done' }))).toEqual({ value: 1, max: 1 });
    expect(extent(operation({ total: 0, matched: 0 }))).toEqual({ value: 0, max: 1 });
  });

  it('takes as long as it took, and no less than its rate says', () => {
    expect(speed(operation({}))).toBe(2);
    expect(left(operation({}))).toBe(30_000);
    expect(left(operation({ rate: 1 }))).toBe(60_000);
    expect(left(operation({ matched: 200 }))).toBe(0);
  });

  it('says nothing where nothing can be said', () => {
    expect(speed(operation({ updated_at: '2026-01-01T00:00:00Z' }))).toBe(null);
    expect(left(operation({ matched: 0 }))).toBe(null);
    expect(left(operation({ state: 'paused' }))).toBe(null);
  });
});
