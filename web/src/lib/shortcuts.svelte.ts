// Keys. A page says which it knows while it is shown; one that it does not know does nothing.

import { untrack } from 'svelte';
import { settings } from './settings.svelte';

/** What a key does, and the word for it in the list of keys. */
export interface Shortcut {
  /** A key as the browser names it (`j`, `?`, `Escape`), or two after each other (`g q`). */
  keys: string;
  about: string;
  run: (event: KeyboardEvent) => void;
  /** Whether it also works without single letters, and where text is typed; in front of a dialog nothing does. */
  always?: boolean;
}

/** How long the second of two keys may take. */
const PAIR_MS = 1_500;

/** Keys that only say how another is meant. */
const MODIFIERS = ['Shift', 'Control', 'Alt', 'AltGraph', 'Meta'];

class Shortcuts {
  /** All that are known at this moment, for the list of keys. */
  known = $state.raw<readonly Shortcut[]>([]);
  #first: { key: string; at: number } | null = null;

  start(): void {
    document.addEventListener('keydown', (event) => this.#pressed(event));
  }

  /** Knows these for as long as the component that asks is shown. Called while it is made. */
  use(shortcuts: () => readonly Shortcut[]): void {
    $effect(() => {
      const mine = shortcuts();
      // What others know is no reason to say this again.
      this.known = [...mine, ...untrack(() => this.known)];
      return () => {
        this.known = untrack(() => this.known).filter((one) => !mine.includes(one));
      };
    });
  }

  #pressed(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.isComposing || MODIFIERS.includes(event.key)) return;
    const typing = isTyped(event.target);
    const key = `${event.ctrlKey || event.metaKey ? 'Ctrl+' : ''}${event.altKey ? 'Alt+' : ''}${event.key}`;
    const first = this.#first !== null && event.timeStamp - this.#first.at < PAIR_MS ? this.#first.key : null;
    const usable = isModal() ? [] : this.known.filter((one) => one.always || (!typing && settings.letters));
    const pair = first === null ? undefined : usable.find((one) => one.keys === `${first} ${key}`);
    const found = pair ?? usable.find((one) => one.keys === key);
    const begins = !typing && usable.some((one) => one.keys.startsWith(`${key} `));
    this.#first = found === undefined && begins ? { key, at: event.timeStamp } : null;
    if (found === undefined) {
      // Whoever typed a filter goes on with the keys of the list.
      if (key === 'Escape' && typing && event.target instanceof HTMLElement && event.target.matches('[data-filter]')) event.target.blur();
      return;
    }
    event.preventDefault();
    found.run(event);
  }
}

function isTyped(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return true;
  return target instanceof HTMLInputElement && !['checkbox', 'radio', 'button', 'submit'].includes(target.type);
}

function isModal(): boolean {
  return document.querySelector('dialog[open]') !== null;
}

export const shortcuts = new Shortcuts();
