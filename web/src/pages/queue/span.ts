// Spans of time as they are typed: the way the command line writes them.

const SIZES: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000 };
const PART = /(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)/y;

/** The milliseconds of `30s`, `1.5 h` or `1h 30m`; nothing where it is no such thing. */
export function parseSpan(text: string): number | null {
  const typed = text.trim().toLowerCase();
  if (typed === '0') return 0;
  let sum = 0;
  let at = 0;
  while (at < typed.length) {
    PART.lastIndex = at;
    const found = PART.exec(typed);
    if (!found) return null;
    sum += Number(found[1]) * (SIZES[found[2] ?? ''] ?? 0);
    at = PART.lastIndex;
    while (typed[at] === ' ') at++;
  }
  const whole = Math.round(sum);
  return typed === '' || !Number.isSafeInteger(whole) ? null : whole;
}

/** The same span with its largest unit that is exact, so that reading it again gives the same. */
export function writeSpan(ms: number): string {
  if (ms === 0) return '0';
  const unit = (['d', 'h', 'm', 's'] as const).find((one) => ms % (SIZES[one] ?? 1) === 0) ?? 'ms';
  return `${ms / (SIZES[unit] ?? 1)}${unit}`;
}
