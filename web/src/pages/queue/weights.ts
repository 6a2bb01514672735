// The weights of fairness keys, as they are typed.

export type Weights = Record<string, number>;

/** One key as it is typed. */
export interface Typed {
  key: string;
  weight: string;
}

export function typedOf(weights: Weights): Typed[] {
  return Object.entries(weights)
    .map(([key, weight]) => ({ key, weight: String(weight) }))
    .sort((one, other) => (one.key < other.key ? -1 : 1));
}

/** The number that is typed; nothing where it is none. Whether it is too large the server says. */
export function weightOf(text: string): number | null {
  const weight = Number(text.trim());
  return /^\d+$/.test(text.trim()) && Number.isSafeInteger(weight) && weight >= 1 ? weight : null;
}

/** What is sent; nothing where something that is typed is no weight. A key may have any name, `__proto__` too. */
export function weightsOf(typed: readonly Typed[]): Weights | null {
  const found = typed.map(({ key, weight }) => [key, weightOf(weight)] as const);
  return found.some(([, weight]) => weight === null) ? null : (Object.fromEntries(found) as Weights);
}

/** What was typed over what somebody else has set meanwhile. Says which keys they changed. */
export function merged(typed: readonly Typed[], before: Weights, now: Weights): { typed: Typed[]; changed: string[] } {
  const mine = new Map(typed.map((one) => [one.key, one.weight]));
  const was = new Map(typedOf(before).map((one) => [one.key, one.weight]));
  const is = new Map(typedOf(now).map((one) => [one.key, one.weight]));
  const changed = [...new Set([...was.keys(), ...is.keys()])].filter((key) => was.get(key) !== is.get(key)).sort();
  for (const key of changed) {
    const set = is.get(key);
    if (mine.get(key) !== was.get(key)) continue;
    if (set === undefined) mine.delete(key);
    else mine.set(key, set);
  }
  const all = [...mine].map(([key, weight]) => ({ key, weight }));
  return { typed: all.sort((one, other) => (one.key < other.key ? -1 : 1)), changed };
}
