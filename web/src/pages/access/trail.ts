// The audit trail as the page has it: the newest entries, and the older ones that were asked for.

export interface Entry {
  sequence: number;
}

export interface Trail<T extends Entry> {
  entries: readonly T[];
  /** Where the older ones are. */
  next: string | null;
}

/** The newest page, read again, before what is known. Where there is a gap between the two, what is known is let go. */
export function newer<T extends Entry>(known: Trail<T>, page: Trail<T>): Trail<T> {
  const oldest = page.entries.at(-1)?.sequence;
  const first = known.entries[0]?.sequence;
  if (oldest === undefined || first === undefined || oldest > first || page.next === null) return page;
  const rest = known.entries.filter((entry) => entry.sequence < oldest);
  return { entries: [...page.entries, ...rest], next: rest.length > 0 ? known.next : page.next };
}

/** An older page behind what is known. */
export function older<T extends Entry>(known: Trail<T>, page: Trail<T>): Trail<T> {
  const last = known.entries.at(-1)?.sequence ?? Number.POSITIVE_INFINITY;
  return { entries: [...known.entries, ...page.entries.filter((entry) => entry.sequence < last)], next: page.next };
}
