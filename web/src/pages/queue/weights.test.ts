import { describe, expect, it } from 'vitest';
import { merged, typedOf, weightsOf } from './weights';

describe('weights', () => {
  it('are sent as they came', () => {
    expect(weightsOf(typedOf({ b: 2, a: 1 }))).toEqual({ a: 1, b: 2 });
    const odd = JSON.parse('{"__proto__": 3}') as Record<string, number>;
    expect(JSON.stringify(weightsOf(typedOf(odd)))).toBe('{"__proto__":3}');
  });

  it('are whole numbers from 1', () => {
    for (const weight of ['', '0', '-1', '1.5', 'x']) expect(weightsOf([{ key: 'a', weight }]), weight).toBeNull();
  });
});

describe('merged', () => {
  it('keeps what was typed, and follows others where nothing was', () => {
    const typed = [{ key: 'a', weight: '9' }, { key: 'b', weight: '2' }, { key: 'new', weight: '4' }];
    const found = merged(typed, { a: 1, b: 2, c: 3 }, { a: 5, b: 7, c: 3, d: 8 });
    expect(found.changed).toEqual(['a', 'b', 'd']);
    expect(weightsOf(found.typed)).toEqual({ a: 9, b: 7, new: 4, d: 8 });
  });

  it('removes what others removed, unless it was typed', () => {
    const found = merged([{ key: 'a', weight: '1' }, { key: 'b', weight: '9' }], { a: 1, b: 2 }, {});
    expect(weightsOf(found.typed)).toEqual({ b: 9 });
  });
});
