// The settings of a queue as they are typed. What follows the default is told from what is set to the same value: the one changes with
// the server, the other does not.

import { t } from '../../texts';
import { type Config, type Setting, type SettingKey, SETTINGS, put, valueOf } from './settings';
import { parseSpan, writeSpan } from './span';

/** Whether a setting follows the default, is set to nothing, or to a value. */
export type Mode = 'default' | 'nothing' | 'value';

/** One setting as it is typed. A value has one part, or several with names. */
export interface Field {
  mode: Mode;
  parts: Record<string, string>;
}

export type Form = Record<SettingKey, Field>;

/** What is wrong, by setting, or by `setting.part`. */
export type Wrong = Record<string, string>;

/** The parts of what has several, and what each is. A part that is left empty is not sent. */
export const PARTS: Partial<Record<Setting['kind'], readonly (readonly [name: PartName, kind: 'span' | 'count' | 'share'])[]>> = {
  breaker: [
    ['failure_share', 'share'],
    ['min_messages', 'count'],
    ['window_ms', 'span'],
    ['open_for_ms', 'span'],
    ['probe_timeout_ms', 'span'],
  ],
  retention: [
    ['age_ms', 'span'],
    ['count', 'count'],
  ],
};

export type PartName = keyof typeof t.queue.parts;

/** The name of the only part of a value that has no others. */
export const ONLY = 'value';

function written(kind: Setting['kind'], value: unknown): string {
  if (value === null || value === undefined) return '';
  return kind === 'span' ? writeSpan(value as number) : String(value);
}

function partsOf(setting: Setting, value: unknown): Record<string, string> {
  const named = PARTS[setting.kind];
  if (!named) return { [ONLY]: written(setting.kind, value) };
  const inside = (value ?? {}) as Record<string, unknown>;
  return Object.fromEntries(named.map(([name, kind]) => [name, written(kind, inside[name])]));
}

/** What is set, for typing. Who sets what follows the default begins with what is in force. */
export function fieldOf(setting: Setting, config: Config, inForce: Config): Field {
  const value = valueOf(config, setting.key);
  const mode = value === undefined ? 'default' : value === null ? 'nothing' : 'value';
  return { mode, parts: partsOf(setting, value ?? valueOf(inForce, setting.key)) };
}

export function formOf(config: Config, inForce: Config = config): Form {
  return Object.fromEntries(SETTINGS.map((setting) => [setting.key, fieldOf(setting, config, inForce)])) as Form;
}

/** Whether two say the same. What is typed in a part counts only where it would be sent. */
export function same(one: Field, other: Field): boolean {
  if (one.mode !== other.mode) return false;
  return one.mode !== 'value' || Object.keys(one.parts).every((part) => one.parts[part] === other.parts[part]);
}

/** What a part says, or what is wrong with it. Whether it lies within its limits the server says. */
function read(kind: Setting['kind'], text: string): { value: unknown } | { wrong: string } {
  const typed = text.trim();
  if (typed === '') return { wrong: t.queue.wrong.empty };
  switch (kind) {
    case 'span': {
      const ms = parseSpan(typed);
      return ms === null ? { wrong: t.queue.wrong.span } : { value: ms };
    }
    case 'count': {
      const count = Number(typed.replaceAll(',', ''));
      return /^[\d,]+$/.test(typed) && Number.isSafeInteger(count) ? { value: count } : { wrong: t.queue.wrong.count };
    }
    case 'share':
    case 'number':
      return /^-?\d+(\.\d+)?$/.test(typed) ? { value: Number(typed) } : { wrong: t.queue.wrong.number };
    case 'switch':
      return { value: typed === 'true' };
    default:
      return { value: typed };
  }
}

function readField(setting: Setting, field: Field, wrong: Wrong): unknown {
  const named = PARTS[setting.kind];
  if (!named) {
    const found = read(setting.kind, field.parts[ONLY] ?? '');
    if ('value' in found) return found.value;
    wrong[setting.key] = found.wrong;
    return undefined;
  }
  const value: Record<string, unknown> = {};
  for (const [name, kind] of named) {
    if ((field.parts[name] ?? '').trim() === '') continue;
    const found = read(kind, field.parts[name] ?? '');
    if ('value' in found) value[name] = found.value;
    else wrong[`${setting.key}.${name}`] = found.wrong;
  }
  return value;
}

/** What is sent: what was typed over `kept`, which has what no field is for. What follows the default is left out. */
export function configOf(form: Partial<Form>, kept: Config = {}): { config: Config; wrong: Wrong } {
  const config: Record<string, unknown> = kept.weights ? { weights: kept.weights } : {};
  const wrong: Wrong = {};
  for (const setting of SETTINGS) {
    const field = form[setting.key];
    if (field === undefined || field.mode === 'default') continue;
    const value = field.mode === 'nothing' ? null : readField(setting, field, wrong);
    if (value !== undefined) put(config, setting.key, value);
  }
  return { config: config as Config, wrong };
}

/**
 * The form over what somebody else has set meanwhile: what was not touched here follows them, what was typed here stays. Says which
 * settings they changed.
 */
export function rebase(form: Form, before: Form, now: Form): { form: Form; changed: SettingKey[] } {
  const changed = SETTINGS.filter(({ key }) => !same(before[key], now[key])).map(({ key }) => key);
  const merged = SETTINGS.map(({ key }) => [key, same(form[key], before[key]) ? now[key] : form[key]]);
  return { form: Object.fromEntries(merged) as Form, changed };
}

/** Which setting, and which part of it, the server means by a place such as `retry.base_delay` or `/config/breaker/window_ms`. */
export function placeOf(pointer: string): string | undefined {
  const bare = pointer.replace(/^\/?(config\/)?/, '').replaceAll('/', '.').replace(/^config\./, '');
  const plain = (name: string) => name.replace(/_ms$/, '');
  const places = SETTINGS.flatMap(({ key, kind }) => [key, ...(PARTS[kind] ?? []).map(([part]) => `${key}.${part}`)]);
  return places.find((place) => plain(place) === plain(bare));
}
