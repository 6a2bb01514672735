import { describe, expect, it } from 'vitest';
import { leftOf } from './left';

describe('leftOf', () => {
  const lease = { from: 1_000, deadline: 31_000 };

  it.each([
    [0, 31_000, 1, 'fine'],
    [1_000, 30_000, 1, 'fine'],
    [23_500, 7_500, 0.25, 'fine'],
    [23_501, 7_499, 0.25, 'quarter'],
    [28_000, 3_000, 0.1, 'quarter'],
    [28_001, 2_999, 0.1, 'tenth'],
    [30_999, 1, 0, 'tenth'],
    [31_000, 0, 0, 'overdue'],
    [99_000, 0, 0, 'overdue'],
  ])('at %d there are %d ms left, a share of %d: %s', (now, ms, share, band) => {
    const left = leftOf(lease, now);
    expect(left).toMatchObject({ ms, band });
    expect(left.share).toBeCloseTo(share, 2);
  });

  it('knows no share of nothing', () => {
    expect(leftOf({ from: 5_000, deadline: 5_000 }, 4_000)).toEqual({ ms: 1_000, share: 1, band: 'fine' });
  });
});
