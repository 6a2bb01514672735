// What happens, as it happens: one stream of events for all tabs of one key, handed on at most once a second.
//
// One tab holds a lock and the connection, and tells the others; when it closes, the lock goes to the next, which goes on behind
// the last event that was told. Where the browser has no locks (a page that did not come over TLS or from this machine), each tab has a
// connection of its own. While there is no stream, whoever watches is told every ten seconds to look for itself.

import { type Schema, ask, credentials } from './api/client';
import { Problem } from './api/problem';
import { address, base } from './place';
import { type Sent, SseParser } from './sse';

/** How the stream stands. */
export type LiveState = 'off' | 'connecting' | 'live' | 'lost' | 'slow';

/** An event with its place in the stream. */
export type Told = Schema['Event'] & { id: string };

/** What somebody wants to be told of: all of it, or one queue, or some types of events. */
export interface Interest {
  queue?: string | undefined;
  types?: readonly string[] | undefined;
}

/** Who is told every event. */
interface Tail {
  tell: (events: Told[]) => void;
  gap: (missed: number | null) => void;
}

/** Whether one of these events is what somebody wants to be told of. */
export function concerns(interest: Interest, events: readonly Told[]): boolean {
  const { queue, types } = interest;
  return events.some((event) => (queue === undefined || event.payload.queue === queue) && (types === undefined || types.includes(event.type)));
}

/** How often whoever watches is told that something happened, at most. */
const COALESCE_MS = 1_000;
/** How often whoever watches looks for itself while there is no stream. */
const REFRESH_MS = 10_000;
/** How long the stream may be silent: the server says something every 15 seconds. */
const SILENCE_MS = 40_000;
/** The first and the longest time to stay away after a loss. */
const AWAY_MS = 1_000;
const AWAY_MS_MAX = 15_000;
/** How long a stream lives before it is taken for a good one, where nothing happens on it. */
const LIVES_MS = 5_000;
/** The longest time that a server may ask to stay away: what it says more may be a mistake. */
const RETRY_MS_MAX = 60_000;

/** How long to stay away after each loss: longer each time, and never shorter than the server asks for. */
class Absence {
  #ms = AWAY_MS;
  #least = 0;

  /** The stream is a good one: the next loss is the first again. */
  lived(): void {
    this.#ms = AWAY_MS;
  }

  /** What the server asks for. */
  atLeast(ms: number): void {
    this.#least = Math.min(ms, RETRY_MS_MAX);
  }

  longest(): void {
    this.#ms = AWAY_MS_MAX;
  }

  /** The time for this loss. Not all come back at the same moment: the server that comes back has better things to do. */
  next(): number {
    const ms = Math.max(this.#ms * 0.75, this.#least) + (this.#ms / 2) * Math.random();
    this.#ms = Math.min(this.#ms * 2, AWAY_MS_MAX);
    return ms;
  }
}

/** An event as the server tells it; nothing where it is none that this page knows how to read. */
function eventOf(data: string): Schema['Event'] | null {
  try {
    const said = JSON.parse(data) as Partial<Schema['Event']> | null;
    return typeof said?.type === 'string' && typeof said.payload === 'object' && said.payload !== null ? (said as Schema['Event']) : null;
  } catch {
    return null;
  }
}

type Note =
  | { kind: 'events'; events: Told[] }
  /** Whoever watches must look again; and the server says where the stream goes on, where some events were missed. */
  | { kind: 'look'; missedUpTo?: string }
  | { kind: 'state'; state: LiveState }
  | { kind: 'hello' };

interface Watcher {
  interest: () => Interest;
  tell: () => boolean;
  due: boolean;
}

class Live {
  state = $state<LiveState>('off');
  /** Whether the user wants the page to stand still. */
  paused = $state(false);
  /** Whether nobody sees the page. */
  #hidden = $state(document.hidden);
  /** Whether nothing is read that nobody asked for: it would not be seen, or was not to change. Going on, or coming back, makes up for it. */
  still = $derived(this.paused || this.#hidden);
  /** How many events came while it stood still. */
  missed = $state(0);

  #watchers = new Set<Watcher>();
  #tails = new Set<Tail>();
  /** Whether more were missed while it stood still than were counted. */
  #lagged = false;
  #lastId: string | null = null;
  #ending: AbortController | null = null;
  #channel: BroadcastChannel | null = null;
  #flush: ReturnType<typeof setTimeout> | undefined;
  #refresh: ReturnType<typeof setInterval> | undefined;

  /** Opens the stream, or joins the tab that has it. */
  start(watches = true): void {
    this.stop();
    const ending = new AbortController();
    this.#ending = ending;
    this.state = 'connecting';
    this.#refresh = setInterval(() => {
      if (this.state !== 'live') this.#all();
    }, REFRESH_MS);
    this.#hidden = document.hidden;
    const seen = () => {
      this.#hidden = document.hidden;
      this.#soon();
    };
    document.addEventListener('visibilitychange', seen, { signal: ending.signal });
    // Who may not watch would only be refused: the page looks for itself instead.
    if (watches) void this.#share(ending.signal);
    else this.state = 'slow';
  }

  stop(): void {
    this.#ending?.abort();
    this.#ending = null;
    this.#channel?.close();
    this.#channel = null;
    clearInterval(this.#refresh);
    clearTimeout(this.#flush);
    this.#flush = undefined;
    this.state = 'off';
  }

  /** Stands still, or goes on and looks at what was missed. */
  pause(paused: boolean): void {
    this.paused = paused;
    if (paused) return;
    if (this.missed > 0 || this.#lagged) this.#gap(this.#lagged ? null : this.missed);
    this.missed = 0;
    this.#lagged = false;
    this.#all();
  }

  /**
   * Tells when something happened that is of interest, at most once a second, and not while the page stands still. Whoever is told answers
   * whether it looks; who is at it already is told again.
   */
  watch(interest: () => Interest, tell: () => boolean): () => void {
    const watcher = { interest, tell, due: false };
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Tells every event, in order; and where some are missing, how many, or `null` where nobody knows. */
  tail(tell: Tail['tell'], gap: Tail['gap'] = () => undefined): () => void {
    const tail: Tail = { tell, gap };
    this.#tails.add(tail);
    return () => this.#tails.delete(tail);
  }

  async #share(signal: AbortSignal): Promise<void> {
    if (!('locks' in navigator) || !('BroadcastChannel' in globalThis)) return this.#run(signal);
    const name = await streamName();
    if (signal.aborted) return;
    const channel = new BroadcastChannel(name);
    this.#channel = channel;
    let leads = false;
    channel.onmessage = ({ data }: MessageEvent<Note>) => {
      if (data.kind !== 'hello') this.#hear(data);
      else if (leads) channel.postMessage({ kind: 'state', state: this.state } satisfies Note);
    };
    channel.postMessage({ kind: 'hello' } satisfies Note);
    try {
      await navigator.locks.request(name, { signal }, async () => {
        leads = true;
        await this.#run(signal);
      });
    } catch (cause) {
      if (!signal.aborted) throw cause;
    }
  }

  /** Reads the stream, and comes back after every loss. */
  async #run(signal: AbortSignal): Promise<void> {
    const absence = new Absence();
    while (!signal.aborted) {
      let refused: number | null = null;
      try {
        await this.#read(signal, absence);
      } catch (cause) {
        if (cause instanceof Problem) refused = cause.status;
      }
      if (signal.aborted) return;
      // What a key may do can change. Until it may watch, the page looks for itself, and asks again now and then.
      if (refused === 403) absence.longest();
      this.#say({ kind: 'state', state: refused === 403 ? 'slow' : 'lost' });
      if (refused === 401) return;
      await wait(absence.next(), signal);
      if (!signal.aborted && this.state === 'lost') this.#say({ kind: 'state', state: 'connecting' });
    }
  }

  async #read(signal: AbortSignal, absence: Absence): Promise<void> {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), SILENCE_MS);
    // An answer alone is no stream yet: something in between may end each one at once.
    let lives: ReturnType<typeof setTimeout> | undefined;
    try {
      const headers: Record<string, string> = { accept: 'text/event-stream' };
      if (this.#lastId !== null) headers['last-event-id'] = this.#lastId;
      const response = await ask(address('v1/events'), { headers, signal: AbortSignal.any([signal, silence.signal]) });
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      if (!reader) return;
      lives = setTimeout(() => absence.lived(), LIVES_MS);
      this.#say({ kind: 'state', state: 'live' });
      // Between the last look and the first event something may have happened.
      this.#say({ kind: 'look' });
      const parser = new SseParser();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE_MS);
        const sent = parser.push(value);
        if (parser.retryMs !== null) absence.atLeast(parser.retryMs);
        if (sent.length > 0) absence.lived();
        this.#take(sent);
      }
    } finally {
      clearTimeout(timer);
      clearTimeout(lives);
    }
  }

  #take(sent: Sent[]): void {
    let events: Told[] = [];
    const told = () => {
      if (events.length > 0) this.#say({ kind: 'events', events });
      events = [];
    };
    for (const { id, event, data } of sent) {
      const read = event === 'lagged' ? null : eventOf(data);
      if (read === null) {
        // One that cannot be read is missed as well, and not asked for again.
        told();
        this.#say({ kind: 'look', missedUpTo: id });
      } else {
        events.push({ ...read, id });
      }
    }
    told();
  }

  /** Hears it here, and tells the other tabs. */
  #say(note: Note): void {
    this.#channel?.postMessage(note);
    this.#hear(note);
  }

  #hear(note: Note): void {
    if (note.kind === 'state') this.state = note.state;
    else if (note.kind === 'look') this.#look(note.missedUpTo);
    else if (note.kind === 'events') this.#events(note.events);
  }

  #look(missedUpTo: string | undefined): void {
    if (missedUpTo !== undefined) {
      this.#lastId = missedUpTo;
      if (this.paused) this.#lagged = true;
      else this.#gap(null);
    }
    this.#all();
  }

  #gap(missed: number | null): void {
    for (const tail of this.#tails) tail.gap(missed);
  }

  #events(events: Told[]): void {
    this.#lastId = events.at(-1)?.id ?? this.#lastId;
    if (this.paused) {
      this.missed += events.length;
      return;
    }
    for (const tail of this.#tails) tail.tell(events);
    for (const watcher of this.#watchers) watcher.due ||= concerns(watcher.interest(), events);
    this.#soon();
  }

  /** Whoever watches looks again, whatever it watches. */
  #all(): void {
    if (this.paused) return;
    for (const watcher of this.#watchers) watcher.due = true;
    this.#soon();
  }

  #soon(): void {
    this.#flush ??= setTimeout(() => {
      this.#flush = undefined;
      // What nobody sees is not read; it is when somebody looks again.
      if (this.still) return;
      for (const watcher of [...this.#watchers]) if (watcher.due) watcher.due = !watcher.tell();
      if ([...this.#watchers].some((watcher) => watcher.due)) this.#soon();
    }, COALESCE_MS);
  }
}

/** The name under which tabs share a stream: those with the same key, below the same path. */
async function streamName(): Promise<string> {
  const bytes = new TextEncoder().encode(`${base}\n${credentials.token ?? ''}`);
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return `redrive.events.${[...digest.slice(0, 8)].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

export const live = new Live();
