import { describe, expect, it } from 'vitest';
import { fromLocal, toLocal } from './local';

describe('a time of a field', () => {
  it('means the same moment in either zone', () => {
    const moment = Date.parse('2026-03-29T01:30:05.000Z');
    for (const utc of [true, false]) expect(fromLocal(toLocal(moment, utc), utc)).toBe('2026-03-29T01:30:05.000Z');
    expect(toLocal(moment, true)).toBe('2026-03-29T01:30:05');
  });

  it('may be none', () => {
    expect(fromLocal('', true)).toBeNull();
    expect(fromLocal('soon', false)).toBeNull();
  });
});
