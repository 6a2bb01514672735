import { describe, expect, it } from 'vitest';
import { steady } from './steady';

const key = (row: { id: string }) => row.id;
const row = (id: string, value = 0) => ({ id, value });

describe('steady', () => {
  it('keeps every row where it is, with what is new about it', () => {
    const shown = steady([row('a'), row('b')], [row('b', 2), row('a', 1)], key);
    expect(shown.rows).toEqual([row('a', 1), row('b', 2)]);
    expect(shown).toMatchObject({ newer: 0 });
  });

  it('keeps what has gone, and counts what has come', () => {
    const shown = steady([row('a'), row('b')], [row('c'), row('d'), row('b', 2)], key);
    expect(shown.rows.map(key)).toEqual(['a', 'b']);
    expect([...shown.gone]).toEqual(['a']);
    expect(shown.newer).toBe(2);
  });

  it('grows behind what is shown, where nothing moves', () => {
    const shown = steady([row('a'), row('b')], [row('c'), row('b', 2), row('d'), row('e')], key);
    expect(shown.rows.map(key)).toEqual(['a', 'b', 'd', 'e']);
    expect(shown.newer).toBe(1);
    expect(steady([row('a')], [row('x'), row('y')], key)).toMatchObject({ rows: [row('a')], newer: 2 });
  });
});
