// Numbers, times and sizes as people read them. Counts are never rounded: 1,000,001 dead letters are not 1 M.

import { settings } from './settings.svelte';

const counts = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export function count(value: number): string {
  return counts.format(value);
}

/** A rate a second, with as many digits as matter. */
export function rate(perSecond: number): string {
  if (perSecond === 0) return '0/s';
  const digits = perSecond >= 100 ? 0 : perSecond >= 1 ? 1 : 2;
  return `${perSecond.toFixed(digits)}/s`;
}

export function share(value: number): string {
  const percent = value * 100;
  return `${percent > 0 && percent < 10 ? percent.toFixed(1) : percent.toFixed(0)} %`;
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** A span of time: two units at most, and never a negative one. */
export function span(ms: number): string {
  const whole = Math.max(0, Math.round(ms));
  if (whole < 1_000) return `${whole} ms`;
  if (whole < 10_000 && whole % 1_000 !== 0) return `${(whole / 1_000).toFixed(1)} s`;
  let left = whole;
  const parts: string[] = [];
  for (const [unit, size] of UNITS) {
    const times = Math.floor(left / size);
    if (times > 0 || parts.length > 0) {
      if (times > 0) parts.push(`${times} ${unit}`);
      left -= times * size;
      if (parts.length === 2 || (parts.length === 1 && times === 0)) break;
    }
  }
  return parts.join(' ');
}

/** A span of time that is told each second: in whole seconds, those that have passed. */
export function seconds(ms: number): string {
  const whole = Math.floor(Math.max(0, ms) / 1_000) * 1_000;
  return whole === 0 ? '0 s' : span(whole);
}

/** What is left of a countdown, in whole seconds, a started second as a whole one: `1:05`, `32 s`. */
export function left(ms: number): string {
  const seconds = Math.ceil(Math.max(0, ms) / 1_000);
  if (seconds < 100) return `${seconds} s`;
  const parts = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60];
  const shown = parts[0] === 0 ? parts.slice(1) : parts;
  return shown.map((part, at) => (at === 0 ? String(part) : String(part).padStart(2, '0'))).join(':');
}

export function bytes(size: number): string {
  if (size < 1_024) return `${counts.format(size)} B`;
  const units = ['KiB', 'MiB', 'GiB'];
  let value = size / 1_024;
  let unit = 0;
  while (value >= 1_024 && unit < units.length - 1) {
    value /= 1_024;
    unit++;
  }
  return `${value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}

/** A moment, in the zone that the user chose. */
export function moment(time: string | number, milliseconds = false): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return String(time);
  const utc = settings.zone === 'utc';
  const two = (value: number) => String(value).padStart(2, '0');
  const [year, month, day] = utc
    ? [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
    : [date.getFullYear(), date.getMonth(), date.getDate()];
  const [hour, minute, second] = utc
    ? [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()]
    : [date.getHours(), date.getMinutes(), date.getSeconds()];
  const fine = milliseconds ? `.${String(date.getUTCMilliseconds()).padStart(3, '0')}` : '';
  return `${year}-${two(month + 1)}-${two(day)} ${two(hour)}:${two(minute)}:${two(second)}${fine}${utc ? ' UTC' : ''}`;
}

/** The milliseconds of a time of the API. */
export function ms(time: string): number {
  return Date.parse(time);
}
