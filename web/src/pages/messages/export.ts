// Messages as a file: what the server streams is read into memory, up to a bound, and then saved.

import { ask, target } from '../../lib/api/client';
import { clock } from '../../lib/clock.svelte';
import { toQuery } from './address';
import type { Filter } from './filter';

/** The most that is read into the page, in bytes. */
export const EXPORT_BYTES_MAX = 64 * 1024 * 1024;

export interface Exported {
  blob: Blob;
  messages: number;
  /** Whether there was more than may be read. */
  cut: boolean;
}

const FEED = 10;

/** Pieces of a stream of lines, up to so many bytes of whole lines. */
export class Lines {
  readonly pieces: Uint8Array<ArrayBuffer>[] = [];
  bytes = 0;
  lines = 0;
  cut = false;

  constructor(readonly bytesMax: number) {}

  /** Takes a piece; answers whether there is room for more. */
  take(piece: Uint8Array<ArrayBuffer>): boolean {
    const room = Math.max(0, this.bytesMax - this.bytes);
    this.cut = piece.length > room;
    const kept = this.cut ? piece.subarray(0, room) : piece;
    for (const byte of kept) if (byte === FEED) this.lines++;
    this.pieces.push(kept);
    this.bytes += kept.length;
    return !this.cut;
  }

  /** What was taken; half a line at the end is left out where it was cut there. */
  blob(type: string): Blob {
    const whole = new Blob(this.pieces, { type });
    if (!this.cut) return whole;
    let behind = 0;
    for (let at = this.pieces.length - 1; at >= 0; at--) {
      const piece = this.pieces[at] as Uint8Array;
      const feed = piece.lastIndexOf(FEED);
      if (feed >= 0) return whole.slice(0, whole.size - behind - (piece.length - feed - 1), type);
      behind += piece.length;
    }
    return new Blob([], { type });
  }
}

/** Reads what matches, a line of JSON for each message. */
export async function exported(queue: string, filter: Filter, signal: AbortSignal, progress: (messages: number) => void): Promise<Exported> {
  const url = target('/v1/queues/{queue}/messages/export', { path: { queue }, query: toQuery(filter, clock.exact()) });
  const response = await ask(url, { headers: { accept: 'application/x-ndjson' }, signal });
  const reader = response.body?.getReader();
  const lines = new Lines(EXPORT_BYTES_MAX);
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
    if (done || value === undefined) break;
    const room = lines.take(value as Uint8Array<ArrayBuffer>);
    progress(lines.lines);
    if (!room) {
      await reader?.cancel();
      break;
    }
  }
  return { blob: lines.blob('application/x-ndjson'), messages: lines.lines, cut: lines.cut };
}

/** How long the address of a file lives: the browser must have begun to read it. */
const ADDRESS_MS = 10_000;

/** Saves something as a file. */
export function save(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), ADDRESS_MS);
}
