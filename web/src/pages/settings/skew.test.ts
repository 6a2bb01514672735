import { describe, expect, it } from 'vitest';
import { skewOf } from './skew';

describe('skewOf', () => {
  it.each([
    [0, 'exact', 0],
    [499, 'exact', 0],
    [-499, 'exact', 0],
    [-3_600_200, 'ahead', 3_600_000],
    [500, 'behind', 1_000],
    [1_700, 'behind', 2_000],
  ])('%d ms is %s by %d ms', (skew, way, ms) => {
    expect(skewOf(skew)).toEqual({ way, ms });
  });
});
