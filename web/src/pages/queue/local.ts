// A time as a field of the browser takes it, which knows no zone, and back.

/** The value of such a field for a moment, in the zone of this machine or in UTC. */
export function toLocal(ms: number, utc: boolean): string {
  const shift = utc ? 0 : new Date(ms).getTimezoneOffset() * 60_000;
  return new Date(ms - shift).toISOString().slice(0, 19);
}

/** The moment that such a field means, as the API writes it; nothing where it means none. */
export function fromLocal(value: string, utc: boolean): string | null {
  const date = new Date(utc ? `${value}Z` : value);
  return value === '' || Number.isNaN(date.getTime()) ? null : date.toISOString();
}
