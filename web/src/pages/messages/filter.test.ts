import { describe, expect, it } from 'vitest';
import { fromAddress, toAddress, toBody, toQuery } from './address';
import { complete } from './complete';
import { EVERYTHING, type Filter, REASONS, STATES, TEXT_MAX, type Wrong, parse, print } from './filter';
import { parseSpan, printSpan } from './span';

/** Chance that can be repeated. */
function chance(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 4_294_967_296) * below);
  };
}

const CHARACTERS = [...'ab:<>="\\\' \t\n.-_/%&#?+é漢🙂\u202e\u0000\u00a0'];

function anyText(roll: (below: number) => number, alphabet: readonly string[], most: number): string {
  return Array.from({ length: roll(most + 1) }, () => alphabet[roll(alphabet.length)]).join('');
}

function anyFilter(roll: (below: number) => number): Filter {
  const some = <T>(make: () => T): T[] => [...new Set(Array.from({ length: roll(4) }, make))];
  const maybe = <T>(make: () => T): T | null => (roll(2) === 0 ? null : make());
  const text = () => anyText(roll, CHARACTERS, 8);
  const hex = (digits: number) => Array.from({ length: digits }, () => '0123456789abcdef'[roll(16)]).join('');
  return {
    state: some(() => STATES[roll(STATES.length)] as (typeof STATES)[number]),
    type: some(text),
    source: some(text),
    key: some(text),
    consumer: some(text),
    reason: some(() => REASONS[roll(REASONS.length)] as (typeof REASONS)[number]),
    id: some(() => `${hex(8)}-${hex(4)}-${hex(4)}-${hex(4)}-${hex(12)}`),
    fingerprint: maybe(() => hex(16)),
    attemptsMin: maybe(() => roll(50)),
    attemptsMax: maybe(() => roll(50)),
    ageMin: maybe(() => roll(1_000_000_000)),
    ageMax: maybe(() => roll(1_000_000_000)),
    error: maybe(() => `x${anyText(roll, [...CHARACTERS, ','], 20)}`),
  };
}

const wrongs = (line: string): [Wrong, string][] => parse(line).problems.map(({ wrong, word }) => [wrong, word]);

describe('a filter', () => {
  it('is read as it was written, whatever its values are', () => {
    const roll = chance(7);
    for (let round = 0; round < 3_000; round++) {
      const filter = anyFilter(roll);
      expect(parse(print(filter)), print(filter)).toEqual({ filter, problems: [] });
    }
  });

  it('is the same in the address', () => {
    const roll = chance(11);
    for (let round = 0; round < 1_000; round++) {
      const filter = anyFilter(roll);
      const query = new URLSearchParams();
      for (const [name, value] of Object.entries(toAddress(filter))) if (value !== null) query.set(name, String(value));
      expect(fromAddress(query).filter, query.toString()).toEqual(filter);
    }
  });

  it('never fails, whatever is typed, and what it read it reads again', () => {
    const roll = chance(3);
    const pieces = ['state', 'type', 'attempts', 'age', 'error', 'id', ':', '>=', '<', '"', '\\', ',', ' ', 'dead', '3', '1h', '<script>', '\u202e', '🙂'];
    for (let round = 0; round < 5_000; round++) {
      const line = anyText(roll, pieces, 12);
      const { filter, problems } = parse(line);
      expect(parse(print(filter)).filter, line).toEqual(filter);
      for (const { from, to } of problems) expect(from <= to && to <= line.length, line).toBe(true);
      complete(line, roll(line.length + 1), {});
    }
    expect(wrongs('x'.repeat(TEXT_MAX + 1))).toEqual([['too_long', '']]);
    expect(parse(' '.repeat(TEXT_MAX)).problems).toEqual([]);
  });

  it('takes each part as it is meant', () => {
    const line = 'state:dead,ready type:order.paid source:x key:tenant-7 consumer:w1 reason:max_attempts attempts>=3 attempts<=5 age>1h age<2d error:"timed \\"out\\""';
    expect(parse(line)).toEqual({
      problems: [],
      filter: {
        ...EVERYTHING,
        state: ['dead', 'ready'], type: ['order.paid'], source: ['x'], key: ['tenant-7'], consumer: ['w1'], reason: ['max_attempts'],
        attemptsMin: 3, attemptsMax: 5, ageMin: 3_600_000, ageMax: 172_800_000, error: 'timed "out"',
      },
    });
    expect(parse('attempts>2 attempts<5').filter).toMatchObject({ attemptsMin: 3, attemptsMax: 4 });
    expect(parse('attempts:2').filter).toMatchObject({ attemptsMin: 2, attemptsMax: 2 });
    expect(parse('key:"" error:a,b type:a type:b,a').filter).toMatchObject({ key: [''], error: 'a,b', type: ['a', 'b'] });
  });

  it('says what is wrong, and where', () => {
    expect(wrongs('timeout')).toEqual([['no_field', 'timeout']]);
    expect(wrongs('state:dead queue:x')).toEqual([['unknown_field', 'queue']]);
    expect(wrongs('state:dead,gone')).toEqual([['unknown_value', 'gone']]);
    expect(wrongs('type: x')).toEqual([['no_value', 'type:'], ['no_field', 'x']]);
    expect(wrongs('type:"a,b"')).toEqual([['comma', '"a,b"']]);
    expect(wrongs('error:"never ends')).toEqual([['unclosed', '"never ends']]);
    expect(wrongs('type>=3')).toEqual([['operator', 'type>=3']]);
    expect(wrongs('age:1h')).toEqual([['operator', 'age:1h']]);
    expect(wrongs('age>5')).toEqual([['not_a_span', '5']]);
    expect(wrongs('attempts<0')).toEqual([['not_a_number', '0']]);
    expect(wrongs('attempts>=9999999999')).toEqual([['not_a_number', '9999999999']]);
    expect(wrongs('attempts>=1 attempts>=2')).toEqual([['twice', 'attempts>=2']]);
    expect(wrongs('fingerprint:xyz')).toEqual([['not_a_fingerprint', 'xyz']]);
    expect(wrongs('id:7')).toEqual([['not_an_id', '7']]);
    expect(wrongs(`type:${Array.from({ length: 101 }, (_, at) => at).join(',')}`).map(([wrong]) => wrong)).toEqual(['too_many']);
  });

  it('is sent as the API takes it', () => {
    const { filter } = parse('state:dead,ready key:"" attempts>=3 age>1h age<2h error:x');
    const now = Date.parse('2026-01-01T12:00:00Z');
    expect(Object.fromEntries(Object.entries(toQuery(filter, now)).filter(([, value]) => value !== undefined))).toEqual({
      state: ['dead', 'ready'], key: ['', ''], attempts_min: 3, error: 'x',
      created_before: '2026-01-01T11:00:00.000Z', created_after: '2026-01-01T10:00:00.000Z',
    });
    expect(toBody(filter, now)).toMatchObject({ states: ['dead', 'ready'], keys: [''], attempts_min: 3, attempts_max: null, created_before: '2026-01-01T11:00:00.000Z' });
    expect(toQuery({ ...EVERYTHING, ageMin: 1e15 }, now).created_before).toBe('1970-01-01T00:00:00.000Z');
  });
});

describe('complete', () => {
  const labels = (line: string, known = {}) => complete(line, line.length, known).choices.map((choice) => choice.label);

  it('offers parts, and then their values', () => {
    expect(labels('')).toContain('attempts>=');
    expect(labels('state:dead so')).toEqual(['source:']);
    expect(labels('state:de')).toEqual(['delayed', 'dead']);
    expect(labels('state:dead,d')).toEqual(['ready', 'delayed', 'leased', 'done']);
    expect(labels('type:paid', { type: ['order.paid', 'order.made'] })).toEqual(['order.paid']);
    expect(labels('error:x')).toEqual([]);
  });

  it('replaces what was typed by something that can be read', () => {
    const line = 'type:"my';
    const { from, to, choices } = complete(line, line.length, { type: ['my "own" type'] });
    expect(parse(line.slice(0, from) + choices[0]?.insert + line.slice(to)).filter.type).toEqual(['my "own" type']);
  });
});

describe('a span', () => {
  it('is read as it was written', () => {
    for (const ms of [0, 1, 999, 1_000, 61_001, 5_400_000, 86_400_000, 999_999_999_999]) expect(parseSpan(printSpan(ms))).toBe(ms);
    expect(parseSpan('1.5h')).toBe(5_400_000);
    expect(parseSpan('1h30m')).toBe(5_400_000);
  });

  it('is nothing else', () => {
    for (const text of ['', '5', '5y', '5s1h', '0.5ms', '-1s', '1 h', 'h', '99999999999d', '1h1h']) expect(parseSpan(text), text).toBe(null);
  });
});
