// Reading server-sent events from a response. `EventSource` cannot show a key, and a key has no place in an address.

/** One event as the server sent it. */
export interface Sent {
  id: string;
  event: string;
  data: string;
}

/** No event of ours is longer; what is, is not ours. In characters. */
const LENGTH_MAX = 1_000_000;

/** Puts what comes in pieces together, and says what each piece completed. Comments keep the line alive and say nothing. */
export class SseParser {
  #rest = '';
  #event = '';
  #data: string[] = [];
  #id = '';
  /** How long the server asks to stay away after a loss, in milliseconds. */
  retryMs: number | null = null;

  push(piece: string): Sent[] {
    this.#rest += piece;
    if (this.#rest.length > LENGTH_MAX) throw new Error('an event is too long');
    const sent: Sent[] = [];
    // A carriage return at the end may be half of a line's end.
    const lines = this.#rest.split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      const done = this.#line(line);
      if (done) sent.push(done);
    }
    return sent;
  }

  #line(line: string): Sent | null {
    if (line === '') {
      const done = this.#data.length > 0 ? { id: this.#id, event: this.#event || 'message', data: this.#data.join('\n') } : null;
      this.#event = '';
      this.#data = [];
      return done;
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') this.#event = value;
    else if (field === 'data') this.#data.push(value);
    else if (field === 'id' && !value.includes('\0')) this.#id = value;
    else if (field === 'retry' && /^\d+$/.test(value)) this.retryMs = Number(value);
    return null;
  }
}
