import { describe, expect, it } from 'vitest';
import { lastOf, wordsOf } from './filter';

describe('the filter of an operation', () => {
  it('is told whole', () => {
    expect(
      wordsOf({
        states: ['dead'], ids: ['a', 'b'], types: ['order.paid', ''], sources: ['the shop'], keys: ['k'], consumers: ['w'], reasons: ['buried'],
        fingerprint: '00c0ffee00c0ffee', attempts_min: 0, attempts_max: 7, created_after: '2026-01-01T00:00:00.000Z', created_before: '2026-01-02T00:00:00.000Z',
        error: 'timed "out"',
      }),
    ).toBe(
      'state:dead type:order.paid,"" source:"the shop" key:k consumer:w reason:buried id:a,b attempts>=0 attempts<=7 ' +
        'created>=2026-01-01T00:00:00.000Z created<=2026-01-02T00:00:00.000Z error:"timed \\"out\\"" fingerprint:00c0ffee00c0ffee',
    );
    expect(wordsOf({})).toBe('');
    expect(wordsOf({ states: [], ids: [], error: null, fingerprint: null, attempts_min: null })).toBe('');
  });

  it('ends at a message, or nowhere', () => {
    expect(lastOf({ until: '0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b' })).toBe('0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b');
    expect(lastOf({ until: '00000000-0000-0000-0000-000000000000' })).toBe(null);
    expect(lastOf({})).toBe(null);
  });
});
