// How far the clock of this machine is from the server's.

export interface Skew {
  way: 'exact' | 'ahead' | 'behind';
  ms: number;
}

/** Less than this is the time that an answer takes. */
const NOTHING_MS = 500;

/** What to say of it, where `skew` is what must be added to this machine's clock to get the server's. In whole seconds. */
export function skewOf(skew: number): Skew {
  if (Math.abs(skew) < NOTHING_MS) return { way: 'exact', ms: 0 };
  return { way: skew < 0 ? 'ahead' : 'behind', ms: Math.max(1, Math.round(Math.abs(skew) / 1_000)) * 1_000 };
}
