// Which messages are meant, as a line that people type: `state:dead type:order.paid attempts>=3 age>1h error:"timed out"`.
//
// Parts are divided by spaces and a message matches when it matches every part; values of one part are divided by commas, and one of them
// is enough. What has spaces, commas or quotes in it is quoted, with `\"` and `\\` inside. The same parts are the address of the page
// and what the API is asked for, so that a filter that is sent to a colleague, shown and applied is one and the same.

import { parseSpan, printSpan } from './span';

export const STATES = ['ready', 'delayed', 'leased', 'dead', 'done'] as const;
export const REASONS = ['max_attempts', 'buried', 'expired_ttl', 'max_deliveries', 'not_reached'] as const;
export type State = (typeof STATES)[number];
export type Reason = (typeof REASONS)[number];

/** Most values of one part: the API's limit. */
export const VALUES_MAX = 100;
/** The longest filter that is read, in characters. */
export const TEXT_MAX = 20_000;
/** The largest number of attempts that the API takes. */
const COUNT_MAX = 4_294_967_295;

/** Which messages are meant: all that match every part. */
export interface Filter {
  state: readonly State[];
  type: readonly string[];
  source: readonly string[];
  key: readonly string[];
  consumer: readonly string[];
  reason: readonly Reason[];
  id: readonly string[];
  fingerprint: string | null;
  attemptsMin: number | null;
  attemptsMax: number | null;
  /** Enqueued at least, and at most, this long ago, in milliseconds. */
  ageMin: number | null;
  ageMax: number | null;
  /** A part of the last error. */
  error: string | null;
}

export const EVERYTHING: Filter = {
  state: [], type: [], source: [], key: [], consumer: [], reason: [], id: [],
  fingerprint: null, attemptsMin: null, attemptsMax: null, ageMin: null, ageMax: null, error: null,
};

export const LISTS = ['state', 'type', 'source', 'key', 'consumer', 'reason', 'id'] as const;
export type ListField = (typeof LISTS)[number];
/** The parts that there are, in the order in which they are offered. */
export const FIELDS = ['state', 'type', 'source', 'key', 'consumer', 'reason', 'attempts', 'age', 'error', 'fingerprint', 'id'] as const;
export type Field = (typeof FIELDS)[number];

/** What is wrong with a filter. */
export type Wrong =
  | 'no_field' | 'unknown_field' | 'operator' | 'no_value' | 'unclosed' | 'unknown_value' | 'comma' | 'not_an_id' | 'not_a_fingerprint'
  | 'not_a_number' | 'not_a_span' | 'one_value' | 'twice' | 'too_many' | 'too_long';

/** Something that is wrong, and where: the place in the line, from and to. */
export interface FilterProblem {
  wrong: Wrong;
  from: number;
  to: number;
  /** What stands there. */
  word: string;
}

export interface Parsed {
  filter: Filter;
  problems: readonly FilterProblem[];
}

type Operator = ':' | '>=' | '<=' | '>' | '<';

export interface Value {
  text: string;
  from: number;
  to: number;
  closed: boolean;
}

/** A part of a filter as it stands in the line. */
export interface Part {
  from: number;
  to: number;
  name: string;
  /** Nothing where a word stands alone. */
  operator: Operator | null;
  values: readonly Value[];
}

const OPERATOR = /(?:>=|<=|[:<>])/y;
const NAME = /[^\s:<>",]*/y;
const SPACE = /\s*/y;

function take(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? '';
}

/** One value: pieces that are quoted or not, up to a space or a comma. */
function readValue(text: string, from: number): Value {
  let at = from;
  let read = '';
  let quoted = false;
  for (; at < text.length; at++) {
    const character = text[at] as string;
    if (character === '"') quoted = !quoted;
    else if (quoted && character === '\\' && at + 1 < text.length) read += text[++at];
    else if (!quoted && (character === ',' || /\s/.test(character))) break;
    else read += character;
  }
  return { text: read, from, to: at, closed: !quoted };
}

/** The parts of a line, whatever it is. */
export function parts(text: string): Part[] {
  const found: Part[] = [];
  let at = take(SPACE, text, 0).length;
  while (at < text.length) {
    const from = at;
    const name = take(NAME, text, at);
    const operator = take(OPERATOR, text, at + name.length);
    const values: Value[] = [];
    at += operator === '' ? 0 : name.length + operator.length;
    for (;;) {
      const value = readValue(text, at);
      values.push(value);
      at = value.to;
      if (text[at] !== ',') break;
      at++;
    }
    found.push({ from, to: at, name: operator === '' ? '' : name, operator: operator === '' ? null : (operator as Operator), values });
    at += take(SPACE, text, at).length;
  }
  return found;
}

/** Reads parts one after the other into a filter, and remembers what is wrong. */
class Reader {
  readonly problems: FilterProblem[] = [];
  filter: Filter = EVERYTHING;

  constructor(readonly line: string) {}

  read(part: Part): void {
    const unclosed = part.values.find((value) => !value.closed);
    if (unclosed) return this.wrong('unclosed', unclosed);
    if (part.operator === null) return this.wrong('no_field', part);
    const field = FIELDS.find((one) => one === part.name);
    if (field === undefined) return this.wrong('unknown_field', { from: part.from, to: part.from + part.name.length });
    if (field === 'attempts' || field === 'age') return this.compare(part, field, part.operator);
    if (part.operator !== ':') return this.wrong('operator', part);
    const empty = part.values.find((value) => value.from === value.to);
    if (empty) return this.wrong('no_value', part);
    if (field === 'error') return this.single(part, 'error', part.values.map((value) => value.text).join(','));
    if (field === 'fingerprint') return this.fingerprint(part);
    this.list(part, field);
  }

  wrong(wrong: Wrong, { from, to }: { from: number; to: number }): void {
    this.problems.push({ wrong, from, to, word: this.line.slice(from, to) });
  }

  single<K extends 'error' | 'fingerprint' | 'attemptsMin' | 'attemptsMax' | 'ageMin' | 'ageMax'>(part: Part, key: K, value: Filter[K]): void {
    if (this.filter[key] !== null) this.wrong('twice', part);
    else if (value === '') this.wrong('no_value', part);
    else this.filter = { ...this.filter, [key]: value };
  }

  fingerprint(part: Part): void {
    const [value] = part.values;
    if (part.values.length !== 1 || value === undefined) this.wrong('one_value', part);
    else if (!/^[0-9a-f]{16}$/.test(value.text)) this.wrong('not_a_fingerprint', value);
    else this.single(part, 'fingerprint', value.text);
  }

  compare(part: Part, field: 'attempts' | 'age', operator: Operator): void {
    const [value] = part.values;
    if (part.values.length !== 1 || value === undefined) return this.wrong('one_value', part);
    const read = field === 'age' ? parseSpan(value.text) : count(value.text);
    if (read === null) return this.wrong(field === 'age' ? 'not_a_span' : 'not_a_number', value);
    if (field === 'age') {
      // Ages are measured to the millisecond; whether the limit itself counts is of no interest.
      if (operator === ':') this.wrong('operator', part);
      else this.single(part, operator.startsWith('>') ? 'ageMin' : 'ageMax', read);
      return;
    }
    const [min, max] = { ':': [read, read], '>=': [read, null], '<=': [null, read], '>': [read + 1, null], '<': [null, read - 1] }[operator];
    if ((min ?? 0) > COUNT_MAX || (max ?? 0) < 0) return this.wrong('not_a_number', value);
    if (min !== null && min !== undefined) this.single(part, 'attemptsMin', min);
    if (max !== null && max !== undefined) this.single(part, 'attemptsMax', max);
  }

  list(part: Part, field: ListField): void {
    const read = [...this.filter[field]] as string[];
    for (const value of part.values) {
      const text = field === 'id' ? value.text.toLowerCase() : value.text;
      const wrong = wrongIn(field, text);
      if (wrong !== null) return this.wrong(wrong, value);
      if (!read.includes(text)) read.push(text);
    }
    if (read.length > VALUES_MAX) return this.wrong('too_many', part);
    this.filter = { ...this.filter, [field]: read };
  }
}

function count(text: string): number | null {
  const read = /^\d{1,10}$/.test(text) ? Number(text) : COUNT_MAX + 1;
  return read <= COUNT_MAX ? read : null;
}

/** What is wrong with a value of a list, if anything. */
function wrongIn(field: ListField, text: string): Wrong | null {
  if (field === 'state') return (STATES as readonly string[]).includes(text) ? null : 'unknown_value';
  if (field === 'reason') return (REASONS as readonly string[]).includes(text) ? null : 'unknown_value';
  if (field === 'id') return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text) ? null : 'not_an_id';
  // The API divides its lists by commas, and has no way to say one that divides nothing.
  return text.includes(',') ? 'comma' : null;
}

/** Reads a line. What is wrong is left out and told; nothing that anybody types makes this fail. */
export function parse(line: string): Parsed {
  const reader = new Reader(line);
  if (line.length > TEXT_MAX) reader.wrong('too_long', { from: TEXT_MAX, to: TEXT_MAX });
  else for (const part of parts(line)) reader.read(part);
  return { filter: reader.filter, problems: reader.problems };
}

/** A value as it stands in a line. */
export function quote(text: string): string {
  return text !== '' && !/[\s,"]/.test(text) ? text : `"${text.replace(/["\\]/g, '\\$&')}"`;
}

/** The line of a filter: reading it again gives the same filter. */
export function print(filter: Filter): string {
  const said: string[] = [];
  for (const field of ['state', 'type', 'source', 'key', 'consumer', 'reason'] as const) {
    if (filter[field].length > 0) said.push(`${field}:${filter[field].map(quote).join(',')}`);
  }
  const { attemptsMin, attemptsMax, ageMin, ageMax, error, fingerprint, id } = filter;
  if (attemptsMin !== null && attemptsMin === attemptsMax) said.push(`attempts:${attemptsMin}`);
  else {
    if (attemptsMin !== null) said.push(`attempts>=${attemptsMin}`);
    if (attemptsMax !== null) said.push(`attempts<=${attemptsMax}`);
  }
  if (ageMin !== null) said.push(`age>${printSpan(ageMin)}`);
  if (ageMax !== null) said.push(`age<${printSpan(ageMax)}`);
  if (error !== null) said.push(`error:${quote(error)}`);
  if (fingerprint !== null) said.push(`fingerprint:${fingerprint}`);
  if (id.length > 0) said.push(`id:${id.join(',')}`);
  return said.join(' ');
}

/** Whether it means every message. */
export function isEverything(filter: Filter): boolean {
  return print(filter) === '';
}
