// @vitest-environment node
import { beforeAll, describe, expect, it, vi } from 'vitest';

let format: typeof import('./format');

beforeAll(async () => {
  vi.stubGlobal('localStorage', { getItem: () => '{"zone":"utc"}', setItem: () => undefined });
  format = await import('./format');
});

describe('format', () => {
  it.each([
    [0, '0 ms'],
    [-5, '0 ms'],
    [999, '999 ms'],
    [1_500, '1.5 s'],
    [2_000, '2 s'],
    [65_000, '1 min 5 s'],
    [3_600_000, '1 h'],
    [3_605_000, '1 h'],
    [90_061_000, '1 d 1 h'],
  ])('a span of %d ms is %s', (ms, text) => {
    expect(format.span(ms)).toBe(text);
  });

  it.each([
    [30_000, '30 s'],
    [29_001, '30 s'],
    [1, '1 s'],
    [0, '0 s'],
    [-1, '0 s'],
    [100_000, '1:40'],
    [3_661_000, '1:01:01'],
  ])('%d ms are left as %s', (ms, text) => {
    expect(format.left(ms)).toBe(text);
  });

  it.each([
    [-5, '0 s'],
    [999, '0 s'],
    [1_999, '1 s'],
    [9_400, '9 s'],
    [65_999, '1 min 5 s'],
  ])('%d ms have passed for %s', (ms, text) => {
    expect(format.seconds(ms)).toBe(text);
  });

  it('never rounds a count', () => {
    expect(format.count(1_000_001)).toBe('1,000,001');
  });

  it('writes moments in the zone that was chosen', () => {
    expect(format.moment('2026-11-18T00:05:09.007Z', true)).toBe('2026-11-18 00:05:09.007 UTC');
    expect(format.moment('nonsense')).toBe('nonsense');
  });
});
