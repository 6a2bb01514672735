// Spans of time as people write them: `250ms`, `1.5s`, `5m`, `1h30m`, `7d`. The same that the program `redrive` takes.

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
] as const;

/** The longest span that is taken, in milliseconds: a hundred years. */
const SPAN_MS_MAX = 36_500 * 86_400_000;

/** The milliseconds of a span; nothing where it is none, or has a bare number, which may mean anything. */
export function parseSpan(text: string): number | null {
  let left = text;
  let sum = 0;
  let unitsLeft: readonly (readonly [string, number])[] = UNITS;
  while (left !== '') {
    const part = /^(\d{1,15}(?:\.\d{1,6})?)(ms|d|h|m|s)/.exec(left);
    const at = unitsLeft.findIndex(([unit]) => unit === part?.[2]);
    const size = unitsLeft[at]?.[1];
    if (part === null || size === undefined) return null;
    sum += Number(part[1]) * size;
    // From large to small: `5s1h` is more likely a mistake than meant.
    unitsLeft = unitsLeft.slice(at + 1);
    left = left.slice(part[0].length);
  }
  return text !== '' && Number.isInteger(sum) && sum <= SPAN_MS_MAX ? sum : null;
}

/** A span as it can be read again, exact to the millisecond. */
export function printSpan(ms: number): string {
  let left = ms;
  let text = '';
  for (const [unit, size] of UNITS) {
    const times = Math.floor(left / size);
    if (times > 0) text += `${times}${unit}`;
    left -= times * size;
  }
  return text === '' ? '0s' : text;
}
