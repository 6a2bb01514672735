// What the page has to say: notices that stay for a while, and a voice for those who do not see them.

export type Tone = 'good' | 'bad';

export interface Notice {
  id: number;
  tone: Tone;
  text: string;
  /** Where to read on. */
  link?: { href: string; text: string };
}

/** How long a good notice stays; a bad one stays until it is closed. */
const STAYS_MS = 8_000;
const NOTICES_MAX = 5;
/** How often the voice says something that nobody asked for, at most. */
const VOICE_MS = 10_000;

class Notices {
  shown = $state<Notice[]>([]);
  /** What the voice says, politely. */
  said = $state('');
  #next = 1;
  #saidAt = Number.NEGATIVE_INFINITY;

  tell(tone: Tone, text: string, link?: Notice['link']): void {
    const notice: Notice = { id: this.#next++, tone, text, ...(link ? { link } : {}) };
    this.shown = [...this.shown, notice].slice(-NOTICES_MAX);
    if (tone === 'good') setTimeout(() => this.close(notice.id), STAYS_MS);
  }

  good(text: string, link?: Notice['link']): void {
    this.tell('good', text, link);
  }

  bad(text: string): void {
    this.tell('bad', text);
  }

  close(id: number): void {
    this.shown = this.shown.filter((notice) => notice.id !== id);
  }

  /** Says how things stand, to those who listen, and not more often than they can bear. */
  say(text: string): void {
    const now = performance.now();
    if (now - this.#saidAt < VOICE_MS || text === this.said) return;
    this.#saidAt = now;
    this.said = text;
  }
}

export const notices = new Notices();
