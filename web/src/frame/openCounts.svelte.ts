// What happens on a server that lets everybody see how much does: counts by kind, without a key, and nothing else.

import { get } from '../lib/api/client';
import { address } from '../lib/place';
import { type Sent, SseParser } from '../lib/sse';

/** The kinds of events that are told without a key. */
export const KINDS = ['enqueue', 'lease', 'ack', 'nack', 'requeue', 'move_to_dlq'] as const;
type Kind = (typeof KINDS)[number];
export type Counts = Record<Kind, number>;

/** How long to stay away after a loss. */
const AWAY_MS = 5_000;

/** The counts with what was sent added. What is none of these kinds says nothing. */
export function counted(counts: Counts, sent: readonly Sent[]): Counts {
  const next = { ...counts };
  for (const { data } of sent) {
    const event = read(data);
    const kind = KINDS.find((one) => one === event?.type);
    if (kind !== undefined && event !== null) next[kind] += event.count;
  }
  return next;
}

function read(data: string): { type: unknown; count: number } | null {
  try {
    const event = JSON.parse(data) as { type?: unknown; payload?: { count?: unknown } } | null;
    const count = event?.payload?.count;
    return typeof count === 'number' && Number.isSafeInteger(count) ? { type: event?.type, count } : null;
  } catch {
    return null;
  }
}

export class OpenCounts {
  /** Since the page was opened; nothing where the server does not tell. */
  counts = $state.raw<Counts | null>(null);

  /** Counts until it is told to stop. The server is asked first: a stream that is refused would be an error in the console. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      const time = (await get('/v1/time', { signal })) as { open_reading?: boolean };
      if (time.open_reading !== true) return;
    } catch {
      return;
    }
    this.counts = { enqueue: 0, lease: 0, ack: 0, nack: 0, requeue: 0, move_to_dlq: 0 };
    while (!signal.aborted) {
      await this.#read(signal).catch(() => undefined);
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, AWAY_MS);
        signal.addEventListener('abort', () => {
          clearTimeout(timer);
          resolve(undefined);
        });
      });
    }
  }

  /** No key is shown here, whatever the page knows. */
  async #read(signal: AbortSignal): Promise<void> {
    const response = await fetch(address('v1/events'), { signal, credentials: 'omit', cache: 'no-store', headers: { accept: 'text/event-stream' } });
    const reader = response.ok ? response.body?.pipeThrough(new TextDecoderStream()).getReader() : undefined;
    const parser = new SseParser();
    while (reader) {
      const { done, value } = await reader.read();
      if (done) return;
      this.counts = counted(this.counts as Counts, parser.push(value));
    }
  }
}
