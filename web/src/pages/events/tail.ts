// The newest events, as many as a page can hold, and where some are missing.

import type { Told } from '../../lib/live.svelte';

/** What is kept: an event, or a place where some are missing. Numbered here, because the server begins to count again when it starts. */
export type Line = { number: number; event: Told } | { number: number; missed: number | null };

/** How many are kept. */
export const LINES_MAX = 1_000;

/** Which events. Empty is any. */
export interface Wanted {
  types: readonly string[];
  queue: string;
}

export function wants(wanted: Wanted, event: Told): boolean {
  return (wanted.types.length === 0 || wanted.types.includes(event.type)) && (wanted.queue === '' || event.payload.queue === wanted.queue);
}

/** Lines, the newest first. Only what is wanted is kept, so that what is rare is not pushed out by what is not wanted at all. */
export class TailOfEvents {
  #lines: readonly Line[] = [];
  #waiting: Line[] = [];
  #next = 1;

  get lines(): readonly Line[] {
    return this.#lines;
  }

  /** Takes events. They are in `lines` after the next `flush`: many a second are one change of the page. */
  take(events: readonly Told[], wanted: Wanted): void {
    for (const event of events) if (wants(wanted, event)) this.#waiting.push({ number: this.#next++, event });
    // Whoever sleeps, as a tab in the background does, keeps the newest all the same.
    if (this.#waiting.length > 2 * LINES_MAX) this.#waiting = this.#waiting.slice(-LINES_MAX);
  }

  /** Notes that some are missing here. Two such places without an event between them are one. */
  gap(missed: number | null): void {
    const before = this.#waiting.at(-1) ?? this.#lines[0];
    if (before === undefined) return;
    if (!('missed' in before)) {
      this.#waiting.push({ number: this.#next++, missed });
      return;
    }
    const both = { number: before.number, missed: missed === null || before.missed === null ? null : missed + before.missed };
    if (this.#waiting.length > 0) this.#waiting[this.#waiting.length - 1] = both;
    else this.#lines = [both, ...this.#lines.slice(1)];
  }

  /** Puts what came on top. */
  flush(): readonly Line[] {
    if (this.#waiting.length > 0) {
      this.#lines = [...this.#waiting.reverse(), ...this.#lines].slice(0, LINES_MAX);
      this.#waiting = [];
    }
    return this.#lines;
  }

  /** Keeps of what there is only what is wanted now. */
  keep(wanted: Wanted): readonly Line[] {
    this.flush();
    this.#lines = this.#lines.filter((line) => 'missed' in line || wants(wanted, line.event));
    return this.#lines;
  }

  clear(): readonly Line[] {
    this.#lines = [];
    this.#waiting = [];
    return this.#lines;
  }
}
