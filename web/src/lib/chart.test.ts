import { describe, expect, it } from 'vitest';
import { band, ceiling, lines, stacked } from './chart';

describe('chart', () => {
  it.each([
    [0, 1],
    [3, 3],
    [7, 10],
    [10, 10],
    [11, 20],
    [31, 40],
    [420, 500],
    [1001, 2000],
  ])('%d fits below %d', (most, top) => {
    expect(ceiling(most)).toBe(top);
  });

  it('puts each series on top of those before it', () => {
    const of = (values: (number | null)[]) => ({ name: '', tone: '', values });
    expect(stacked([of([1, 2]), of([3, null])]).map((one) => one.values)).toEqual([
      [1, 2],
      [4, 2],
    ]);
  });

  it('breaks a line where nothing is known', () => {
    expect(lines([0, 10, null, 5], 10, 300, 100)).toEqual(['0.0,100.0 100.0,0.0', '300.0,50.0']);
  });
});

describe('band', () => {
  it('lies between a line and the one below it', () => {
    expect(band([2, 4], [1, 1], 4, 10, 8)).toBe('0.0,4.0 10.0,0.0 10.0,6.0 0.0,6.0');
    expect(band([2, 4], undefined, 4, 10, 8)).toBe('0.0,4.0 10.0,0.0 10.0,8.0 0.0,8.0');
  });
});
