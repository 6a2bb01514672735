import { describe, expect, it } from 'vitest';
import { type Extent, ROWS_MAX, type Row, UNKNOWN, rough, rowOf, stateAt, withFound } from './rows';

const row = (id: string, state = 'ready'): Row => ({
  id, state, type: '', source: '', key: '', attempts: 0, maxAttempts: null, createdAt: '', visibleAt: '', deadline: null, consumer: null,
  deadAt: null, reason: null, error: '',
});
const list = (ids: string) => [...ids].map((id) => row(id));
const ids = (rows: readonly Row[]) => rows.map(({ id }) => id).join('');

const known = (all: string, upTo: string | null, complete = false): Extent => ({ rows: list(all), upTo, complete });
const found = (all: string, after: string | null, next: string | null) => ({ rows: list(all), after, next });

describe('a list', () => {
  it('takes what was found for what is there, in its stretch and nowhere else', () => {
    expect(ids(withFound(known('abcdef', 'f'), found('be', 'a', 'e'), false).rows)).toBe('abef');
    expect(withFound(known('abc', 'c'), found('def', 'c', null), false)).toEqual({ rows: list('abcdef'), upTo: null, complete: true });
    expect(withFound(known('abc', null, true), found('', null, null), false)).toEqual({ rows: [], upTo: null, complete: true });
    expect(ids(withFound(known('fedcba', 'a'), found('hgf', null, 'e'), true).rows)).toBe('hgfdcba');
    expect(ids(withFound(known('fedcba', 'a'), found('c', 'd', 'b'), true).rows)).toBe('fedca');
  });

  it('is known up to where it was read, and to its end where there was no more', () => {
    expect(withFound(UNKNOWN, found('ab', null, 'c'), false)).toMatchObject({ upTo: 'c', complete: false });
    expect(withFound(UNKNOWN, found('', null, 'k'), false)).toEqual({ rows: [], upTo: 'k', complete: false });
    expect(withFound(known('abcdef', 'f'), found('ab', null, 'b'), false)).toMatchObject({ upTo: 'f', complete: false });
    expect(withFound(known('abcdef', null, true), found('ab', null, 'b'), false)).toMatchObject({ upTo: 'f', complete: false });
    expect(withFound(known('ab', 'b'), found('bcd', 'a', 'd'), false)).toMatchObject({ upTo: 'd' });
  });

  it('leaves what it cannot join', () => {
    expect(withFound(known('cba', 'a'), found('zyx', null, 'x'), true)).toEqual({ rows: list('zyx'), upTo: 'x', complete: false });
  });

  it('is the same list where nothing changed', () => {
    const extent = known('abc', null, true);
    expect(withFound(extent, found('bc', 'a', null), false).rows).toBe(extent.rows);
    expect(withFound(extent, { ...found('', 'a', null), rows: [row('b', 'dead'), row('c')] }, false).rows).not.toBe(extent.rows);
  });

  it('is never longer than it may be', () => {
    const many = Array.from({ length: ROWS_MAX }, (_, at) => row(String(at).padStart(6, '0')));
    const { rows, upTo, complete } = withFound({ rows: many, upTo: '019999', complete: false }, { rows: [row('020000')], after: '019999', next: null }, false);
    expect([rows.length, upTo, complete]).toEqual([ROWS_MAX, '019999', false]);
  });

  it('is what the server has, once it was read from its beginning to its end, whatever happened in between', () => {
    for (const newestFirst of [false, true]) {
      let server = [...'bdfhjlnprt'];
      let extent = UNKNOWN;
      const read = (after: string | null, limit: number) => {
        const order = newestFirst ? [...server].sort().reverse() : [...server].sort();
        const rest = order.filter((id) => after === null || (newestFirst ? id < after : id > after));
        const page = rest.slice(0, limit);
        extent = withFound(extent, { rows: page.map((id) => row(id)), after, next: rest.length > limit ? (page.at(-1) ?? null) : null }, newestFirst);
      };
      for (let round = 0; round < 40; round++) {
        const letter = String.fromCharCode(97 + ((round * 7) % 26));
        server = round % 3 === 0 ? server.filter((id) => id !== letter) : [...new Set([...server, letter])];
        read(round % 2 === 0 ? null : (extent.rows[round % 5]?.id ?? null), 3);
        const seen = extent.rows.map(({ id }) => id);
        expect(seen, 'in order, and once').toEqual([...new Set(seen)].sort((one, other) => (one < other ? -1 : 1) * (newestFirst ? -1 : 1)));
      }
      for (read(null, 3); !extent.complete; ) read(extent.upTo, 3);
      const order = [...server].sort();
      for (const after of [null, ...order.filter((_, at) => at % 3 === 2)]) read(after, 30);
      expect(ids(extent.rows)).toBe((newestFirst ? order.reverse() : order).join(''));
    }
  });
});

describe('stateAt', () => {
  it('follows from the record and the clock', () => {
    const delayed = { ...row('a', 'delayed'), visibleAt: '2026-01-01T00:00:10Z' };
    const leased = { ...row('a', 'leased'), deadline: '2026-01-01T00:00:10Z' };
    const at = (seconds: number) => Date.parse('2026-01-01T00:00:00Z') + seconds * 1_000;
    expect([stateAt(delayed, at(9)), stateAt(delayed, at(10))]).toEqual(['delayed', 'ready']);
    expect([stateAt(leased, at(9)), stateAt(leased, at(10))]).toEqual(['leased', 'overdue']);
    expect(stateAt(row('a', 'dead'), at(99))).toBe('dead');
  });
});

describe('rough', () => {
  it('has one unit, and is never negative', () => {
    expect([-5_000, 0, 59_999, 60_000, 7_199_999, 86_400_000 * 400].map(rough)).toEqual(['0 s', '0 s', '59 s', '1 min', '1 h', '400 d']);
  });
});

describe('rowOf', () => {
  it('keeps one line of an error that anybody may have written', () => {
    const message = { id: 'x', last_error: `\u202eboom ${'y'.repeat(1_000)}\nsecond`, failures: [], headers: {} };
    const { error } = rowOf(message as unknown as Parameters<typeof rowOf>[0]);
    expect(error).toMatch(/^⟨U\+202E⟩boom y+…$/);
    expect(error.length).toBeLessThan(200);
  });
});
