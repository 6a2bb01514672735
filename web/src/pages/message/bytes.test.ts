import { describe, expect, it } from 'vitest';
import { decoded, hexDump, textOf } from './bytes';

describe('decoded', () => {
  it('gives all bytes, or so many', () => {
    const all = Uint8Array.from({ length: 300 }, (_, at) => at % 256);
    const base64 = Buffer.from(all).toString('base64');
    expect(decoded(base64)).toEqual(all);
    for (const most of [0, 1, 2, 3, 4, 299, 300, 301]) expect(decoded(base64, most)).toEqual(all.subarray(0, most));
  });
});

describe('hexDump', () => {
  it('shows every byte, and letters where they are some', () => {
    expect(hexDump(Uint8Array.from([0x3c, 0x61, 0x3e, 0xff, 0x00, 0x0a]))).toBe(`00000000  3c 61 3e ff 00 0a${' '.repeat(30)}  <a>...`);
    expect(hexDump(new Uint8Array(33)).split('\n').map((line) => line.slice(0, 8))).toEqual(['00000000', '00000010', '00000020']);
    expect(hexDump(new Uint8Array(0))).toBe('');
  });
});

describe('textOf', () => {
  it('is text only where all of it is', () => {
    expect(textOf(new TextEncoder().encode('é\ufeffx'))).toBe('é\ufeffx');
    expect(textOf(Uint8Array.from([0x61, 0xff]))).toBe(null);
  });
});
