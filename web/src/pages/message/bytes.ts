// Bytes that are no text, as people can look at them.

/** How many bytes are shown. */
export const SHOWN_BYTES_MAX = 4_096;
const WIDTH = 16;

/** The bytes of base64 as the API writes it; all of them, or so many from the beginning. */
export function decoded(base64: string, most = Number.POSITIVE_INFINITY): Uint8Array<ArrayBuffer> {
  const characters = Math.min(base64.length, Math.ceil(most / 3) * 4);
  const binary = atob(base64.slice(0, characters));
  const bytes = new Uint8Array(Math.min(binary.length, most));
  for (let at = 0; at < bytes.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/** Lines of an offset, sixteen bytes, and the same as far as they are letters. */
export function hexDump(bytes: Uint8Array): string {
  const lines: string[] = [];
  for (let from = 0; from < bytes.length; from += WIDTH) {
    const some = [...bytes.subarray(from, from + WIDTH)];
    const hex = some.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const letters = some.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('');
    lines.push(`${from.toString(16).padStart(8, '0')}  ${hex.padEnd(WIDTH * 3 - 1)}  ${letters}`);
  }
  return lines.join('\n');
}

/** The text that bytes are; nothing where they are none. */
export function textOf(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
