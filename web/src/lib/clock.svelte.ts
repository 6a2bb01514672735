// The server's time, and the one ticker of the page.
//
// Countdowns run on the server's clock: the machine of whoever looks may be wrong by hours. The offset is measured by asking,
// and the answer that came back fastest counts, because the truth lies within its round trip. Between answers the page counts
// with `performance.now()`, which nobody can set.

import { get } from './api/client';

/** How often the offset is measured again. */
const MEASURE_MS = 60_000;
/** How many answers are compared. */
const ANSWERS = 5;

interface Measured {
  /** What is added to `performance.now()`. */
  offset: number;
  /** How long the answer took, within which the truth lies. */
  uncertainty: number;
}

class Clock {
  #measured: Measured[] = [];
  #offset = Date.now() - performance.now();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #measuring: ReturnType<typeof setInterval> | undefined;

  /** The server's time in milliseconds, as of the last tick. Everything that counts down reads this. */
  now = $state(Date.now());
  /** Whether the server was asked. */
  known = $state(false);

  /** The server's time in milliseconds, this very moment. */
  exact(): number {
    return performance.now() + this.#offset;
  }

  /** How far the clock of this machine is off, in milliseconds. */
  get skew(): number {
    return this.exact() - Date.now();
  }

  /** Begins to tick. */
  start(): void {
    this.stop();
    void this.measure();
    this.#measuring = setInterval(() => void this.measure(), MEASURE_MS);
    document.addEventListener('visibilitychange', this.#seen);
    this.#tick();
  }

  stop(): void {
    document.removeEventListener('visibilitychange', this.#seen);
    clearTimeout(this.#timer);
    clearInterval(this.#measuring);
  }

  // Where the machine has slept, `performance.now()` may have slept with it; whoever comes back to the tab shall not wait for a minute.
  #seen = (): void => {
    if (!document.hidden) void this.measure();
  };

  /** Asks the server what time it is. */
  async measure(): Promise<void> {
    const asked = performance.now();
    try {
      const { now_ms } = await get('/v1/time');
      const answered = performance.now();
      this.take({ offset: now_ms - (asked + answered) / 2, uncertainty: answered - asked });
    } catch {
      // The next answer will do; meanwhile the page goes on with what it knows.
    }
  }

  /** Takes an answer into account. */
  take(measured: Measured): void {
    // A clock that was moved is known by an answer that no uncertainty explains: what was measured before is wrong then.
    const moved = this.#measured.some(
      (before) => Math.abs(before.offset - measured.offset) > before.uncertainty + measured.uncertainty + 1_000,
    );
    this.#measured = moved ? [measured] : [...this.#measured, measured].slice(-ANSWERS);
    const best = this.#measured.reduce((one, other) => (other.uncertainty < one.uncertainty ? other : one));
    this.#offset = best.offset;
    this.known = true;
    this.now = this.exact();
  }

  #tick(): void {
    this.now = this.exact();
    // Just behind the full second of the server, so that all countdowns change together and none shows a second twice.
    const left = 1_000 - (Math.floor(this.now) % 1_000);
    this.#timer = setTimeout(() => this.#tick(), left + 5);
  }
}

export const clock = new Clock();
