// What a filter may go on with, at the place where somebody types.

import { FIELDS, type Field, REASONS, STATES, parts, quote } from './filter';

/** Values that are known of a queue, for each part that has any. */
export type Known = Partial<Record<Field, readonly string[]>>;

export interface Choice {
  /** What is shown. */
  label: string;
  /** What takes the place of what was typed. */
  insert: string;
}

export interface Completion {
  /** What is replaced. */
  from: number;
  to: number;
  choices: readonly Choice[];
}

/** How many choices are offered. */
export const CHOICES_MAX = 10;

function begins(field: Field): string {
  return field === 'attempts' ? 'attempts>=' : field === 'age' ? 'age>' : `${field}:`;
}

function fields(prefix: string, from: number, to: number): Completion {
  const fitting = FIELDS.filter((field) => field.startsWith(prefix.toLowerCase()));
  return { from, to, choices: fitting.map((field) => ({ label: begins(field), insert: begins(field) })) };
}

/** The choices at a place of a line. */
export function complete(line: string, caret: number, known: Known): Completion {
  const before = line.slice(0, caret);
  const part = parts(before).at(-1);
  if (part === undefined || part.to < before.length) return fields('', caret, caret);
  const value = part.values.at(-1);
  if (part.operator === null || value === undefined) return fields(before.slice(part.from), part.from, caret);
  const field = FIELDS.find((one) => one === part.name);
  const all = field === 'state' ? STATES : field === 'reason' ? REASONS : ((field && known[field]) ?? []);
  const typed = value.text.toLowerCase();
  const said = new Set(part.values.slice(0, -1).map((one) => one.text));
  const fitting = all.filter((one) => one.toLowerCase().includes(typed) && !said.has(one)).slice(0, CHOICES_MAX);
  // What is there already word for word needs no completing.
  const left = fitting.length === 1 && fitting[0] === value.text ? [] : fitting;
  return { from: value.from, to: caret, choices: left.map((one) => ({ label: one === '' ? '""' : one, insert: `${quote(one)} ` })) };
}
