// Rows that do not jump under the pointer.

/** Rows as they are shown. */
export interface Shown<T> {
  rows: readonly T[];
  /** Those that are not there any more, and are shown until nobody points at them. */
  gone: ReadonlySet<string>;
  /** How many rows are there and not shown. */
  newer: number;
}

/**
 * What is shown of `next` while somebody points at `shown`: every row stays in its place with what is new about it, one that has gone
 * stays as it was, and one that has come waits, unless it comes behind them all, where it moves nothing: a list that grows while
 * somebody scrolls does so under the pointer.
 */
export function steady<T>(shown: readonly T[], next: readonly T[], key: (row: T) => string): Shown<T> {
  const found = new Map(next.map((row) => [key(row), row]));
  const gone = new Set<string>();
  const rows = shown.map((row) => {
    const now = found.get(key(row));
    if (now !== undefined) return now;
    gone.add(key(row));
    return row;
  });
  const known = new Set(shown.map(key));
  const behind = next.slice(next.findLastIndex((row) => known.has(key(row))) + 1);
  // Where nothing of what was shown is left, nothing comes behind it.
  const grown = behind.length < next.length ? behind : [];
  const newer = next.reduce((count, row) => count + (known.has(key(row)) ? 0 : 1), 0) - grown.length;
  return { rows: [...rows, ...grown], gone, newer };
}
