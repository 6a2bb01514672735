import { describe, expect, test } from 'vitest';
import { type Trail, newer, older } from './trail';

const trail = (from: number, to: number, next: string | null): Trail<{ sequence: number }> => ({
  entries: Array.from({ length: from - to + 1 }, (_, at) => ({ sequence: from - at })),
  next,
});
const numbers = (one: Trail<{ sequence: number }>) => one.entries.map((entry) => entry.sequence);

describe('the trail', () => {
  test('gets newer entries before what is known', () => {
    const grown = newer(trail(9, 1, 'older'), trail(12, 7, 'page'));
    expect(numbers(grown)).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
    expect(grown.next).toBe('older');
  });

  test('begins anew where something between was missed', () => {
    expect(newer(trail(9, 1, 'older'), trail(20, 11, 'page'))).toEqual(trail(20, 11, 'page'));
  });

  test('is the page where it is all there is, or nothing was known', () => {
    expect(newer(trail(9, 5, 'older'), trail(10, 1, null))).toEqual(trail(10, 1, null));
    expect(newer({ entries: [], next: null }, trail(3, 1, null))).toEqual(trail(3, 1, null));
  });

  test('gets older entries behind what is known, none twice', () => {
    const grown = older(trail(9, 5, 'older'), trail(6, 1, null));
    expect(numbers(grown)).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1]);
    expect(grown.next).toBeNull();
  });
});
