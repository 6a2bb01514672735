// Where the lines of a chart go. Pure, so that it can be tested without a browser.

/** One of the things that a chart shows. */
export interface Series {
  name: string;
  /** The token of its colour, and its pattern where colours are not told apart. */
  tone: string;
  /** One for each time; nothing where it is not known. */
  values: readonly (number | null)[];
}

/** The first number at or above `most` that reads well on an axis. */
export function ceiling(most: number): number {
  if (most <= 4) return Math.max(1, Math.ceil(most));
  const size = 10 ** Math.floor(Math.log10(most));
  return ([1, 2, 4, 5, 10].map((times) => times * size).find((step) => step >= most) ?? most);
}

/** The series, each on top of those before it. */
export function stacked(series: readonly Series[]): Series[] {
  const sums: number[] = [];
  return series.map((one) => ({
    ...one,
    values: one.values.map((value, at) => {
      sums[at] = (sums[at] ?? 0) + (value ?? 0);
      return sums[at];
    }),
  }));
}

/** The band of one stacked series in a box: between its own line and that of the series below it, or the floor. */
export function band(upper: readonly (number | null)[], lower: readonly (number | null)[] | undefined, top: number, width: number, height: number): string {
  const floor = lower ?? upper.map(() => 0);
  const above = lines(upper.map((value) => value ?? 0), top, width, height).join(' ');
  const below = lines(floor.map((value) => value ?? 0), top, width, height).join(' ');
  return `${above} ${below.split(' ').reverse().join(' ')}`;
}

/** The lines of one series in a box: broken where a value is not known. */
export function lines(values: readonly (number | null)[], top: number, width: number, height: number): string[] {
  const step = width / Math.max(1, values.length - 1);
  const found: string[][] = [[]];
  values.forEach((value, at) => {
    if (value === null) found.push([]);
    else found.at(-1)?.push(`${(at * step).toFixed(1)},${(height - (value / top) * height).toFixed(1)}`);
  });
  return found.filter((points) => points.length > 0).map((points) => points.join(' '));
}
