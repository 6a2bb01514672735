import { describe, expect, it } from 'vitest';
import { parseSpan, writeSpan } from './span';

describe('parseSpan', () => {
  it('reads what the command line reads', () => {
    expect(['250ms', '1.5s', '30s', '5m', '12h', '7d', '0'].map(parseSpan)).toEqual([250, 1_500, 30_000, 300_000, 43_200_000, 604_800_000, 0]);
    expect(parseSpan(' 1 h 30 min ')).toBe(5_400_000);
  });

  it('reads nothing else', () => {
    for (const text of ['', ' ', '30', '-1s', '1 s x', 's', '1e3s', '99999999999999d']) expect(parseSpan(text), text).toBeNull();
  });
});

describe('writeSpan', () => {
  it('writes what is read as the same', () => {
    expect([0, 1, 1_500, 30_000, 90_000, 5_400_000, 43_200_000].map(writeSpan)).toEqual(['0', '1ms', '1500ms', '30s', '90s', '90m', '12h']);
    for (const ms of [0, 7, 999, 1_001, 61_000, 86_400_000, 315_360_000_000]) expect(parseSpan(writeSpan(ms))).toBe(ms);
  });
});
