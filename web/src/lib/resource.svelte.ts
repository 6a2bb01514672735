// Something of the server that a page shows, kept up to date.

import { Problem } from './api/problem';
import { type Interest, live } from './live.svelte';

/** What is read, and when it is read again. */
export interface Reading<T> {
  /** Reads it. What it depends on is read here, before anything is awaited, so that it is read again when that changes. */
  load: (signal: AbortSignal) => Promise<T> | null;
  /** Which events mean that it must be read again; nothing where none do. */
  watch?: () => Interest | null;
  /** How often it is read again although nothing happened, in milliseconds: for what changes with time, such as samples and ages. */
  every?: number;
}

/**
 * Something of the server that a page shows. While it is read again, what was read before stays, and so it does when that fails:
 * `problem` says why it may be old. Made while a component is.
 */
export class Resource<T> {
  data = $state.raw<T | undefined>(undefined);
  problem = $state.raw<Problem | null>(null);
  loading = $state(false);

  #reading: Reading<T>;
  #under: AbortController | null = null;
  /** Whether somebody asked for it while it was read. */
  #again = false;

  constructor(reading: Reading<T>) {
    this.#reading = reading;
    $effect(() => {
      const started = this.#start();
      if (started === null) this.data = undefined;
      return () => this.#under?.abort();
    });
    $effect(() => {
      const interest = reading.watch;
      if (!interest) return;
      return live.watch(
        () => interest() ?? { queue: '' },
        () => this.#look(),
      );
    });
    $effect(() => {
      if (reading.every === undefined) return;
      const timer = setInterval(() => {
        if (!live.still) this.#look();
      }, reading.every);
      return () => clearInterval(timer);
    });
  }

  /** Reads it again because something may have changed; not while it is read, which may have begun before that. Says whether it does. */
  #look(): boolean {
    if (this.loading) return false;
    void this.refresh();
    return true;
  }

  /** Reads it again for somebody who wants that. While it is being read, asking once more means once more after it. */
  refresh(): Promise<void> {
    if (this.loading) {
      this.#again = true;
      return Promise.resolve();
    }
    return this.#start() ?? Promise.resolve();
  }

  #start(): Promise<void> | null {
    this.#under?.abort();
    const under = new AbortController();
    this.#under = under;
    const promise = this.#reading.load(under.signal);
    if (promise === null) {
      this.loading = false;
      return null;
    }
    return this.#finish(promise, under);
  }

  async #finish(promise: Promise<T>, under: AbortController): Promise<void> {
    this.loading = true;
    try {
      const data = await promise;
      if (under.signal.aborted) return;
      this.data = data;
      this.problem = null;
    } catch (cause) {
      if (under.signal.aborted) return;
      this.problem = cause instanceof Problem ? cause : new Problem(0, 'PAGE_ERROR', String(cause));
    } finally {
      if (this.#under === under) this.loading = false;
    }
    if (this.#again && !under.signal.aborted) {
      this.#again = false;
      await this.refresh();
    }
  }
}
