import { describe, expect, it } from 'vitest';
import { SseParser } from './sse';

const STREAM = ': redrive\nretry: 2000\n\nid: 1\nevent: ack\ndata: {"a":1}\n\nid: 2\r\nevent: nack\r\ndata: {"b":\r\ndata: 2}\r\n\r\n';

describe('SseParser', () => {
  it('reads the same, however the stream is cut', () => {
    const expected = [
      { id: '1', event: 'ack', data: '{"a":1}' },
      { id: '2', event: 'nack', data: '{"b":\n2}' },
    ];
    for (let cut = 0; cut <= STREAM.length; cut++) {
      const parser = new SseParser();
      const sent = [...parser.push(STREAM.slice(0, cut)), ...parser.push(STREAM.slice(cut))];
      expect(sent, `cut at ${cut}`).toEqual(expected);
      expect(parser.retryMs).toBe(2000);
    }
    const parser = new SseParser();
    expect([...STREAM].flatMap((character) => parser.push(character))).toEqual(expected);
  });

  it('tells nothing of what is not finished', () => {
    expect(new SseParser().push('event: ack\ndata: 1\n')).toEqual([]);
  });

  it('refuses what never ends', () => {
    const parser = new SseParser();
    expect(() => parser.push(`data: ${'x'.repeat(2_000_000)}`)).toThrow();
  });
});
