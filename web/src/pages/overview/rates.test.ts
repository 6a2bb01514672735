import { describe, expect, it } from 'vitest';
import { rates } from './rates';

const sample = (seconds: number, enqueued: number) => ({
  at: new Date(seconds * 1_000).toISOString(),
  enqueued,
  acked: 0,
  failed: 0,
});

describe('rates', () => {
  it('divides by the time that really passed', () => {
    const found = rates([sample(0, 20), sample(10, 20), sample(50, 20)], 10_000);
    expect(found.enqueued).toEqual([2, 2, 0.5]);
  });

  it('never divides by nothing, and has nothing to say of no samples', () => {
    expect(rates([sample(5, 10), sample(5, 10)], 10_000).enqueued).toEqual([1, 1]);
    expect(rates([], 10_000)).toEqual({ enqueued: [], acked: [], failed: [] });
  });
});
