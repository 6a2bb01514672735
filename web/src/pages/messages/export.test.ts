import { describe, expect, it, vi } from 'vitest';

vi.mock('../../lib/api/client', () => ({}));
vi.mock('../../lib/clock.svelte', () => ({}));
const { Lines } = await import('./export');

const bytes = (text: string) => new TextEncoder().encode(text) as Uint8Array<ArrayBuffer>;

describe('Lines', () => {
  it('are all there where there is room', async () => {
    const lines = new Lines(100);
    expect(lines.take(bytes('{"a":1}\n{"b"'))).toBe(true);
    expect(lines.take(bytes(':2}\n'))).toBe(true);
    expect(await lines.blob('x/y').text()).toBe('{"a":1}\n{"b":2}\n');
    expect([lines.lines, lines.cut]).toEqual([2, false]);
  });

  it('end with a whole line, wherever the room ends', async () => {
    const text = 'one\ntwo\nthree\n';
    for (let room = 0; room < text.length; room++) {
      for (let cut = 0; cut <= text.length; cut++) {
        const lines = new Lines(room);
        for (const piece of [text.slice(0, cut), text.slice(cut)]) if (!lines.take(bytes(piece))) break;
        const kept = await lines.blob('x/y').text();
        expect(kept).toBe(text.slice(0, text.slice(0, room).lastIndexOf('\n') + 1));
        expect(lines.lines).toBe(kept.split('\n').length - 1);
      }
    }
  });
});
