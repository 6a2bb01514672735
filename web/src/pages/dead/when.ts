// Moments that a person types, in the zone that the page shows times in.

import type { Zone } from '../../lib/settings.svelte';

const two = (value: number) => String(value).padStart(2, '0');

/** A time of the API for an input of the kind `datetime-local`. */
export function toInput(time: string, zone: Zone): string {
  const date = new Date(time);
  if (time === '' || Number.isNaN(date.getTime())) return '';
  const utc = zone === 'utc';
  const [year, month, day] = utc
    ? [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
    : [date.getFullYear(), date.getMonth(), date.getDate()];
  const [hour, minute, second] = utc
    ? [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()]
    : [date.getHours(), date.getMinutes(), date.getSeconds()];
  return `${String(year).padStart(4, '0')}-${two(month + 1)}-${two(day)}T${two(hour)}:${two(minute)}:${two(second)}`;
}

/** What such an input says, as a time of the API; empty where it says nothing. */
export function fromInput(value: string, zone: Zone): string {
  if (value === '') return '';
  const date = new Date(zone === 'utc' ? `${value}Z` : value);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString();
}
