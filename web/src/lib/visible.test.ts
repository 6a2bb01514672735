import { describe, expect, it } from 'vitest';
import { line, visible } from './visible';

describe('visible', () => {
  it('shows what would be hidden, and leaves the rest', () => {
    expect(visible('a\tb\nc é 漢 🙂')).toBe('a\tb\nc é 漢 🙂');
    expect(visible('\u202Egnp.exe')).toBe('⟨U+202E⟩gnp.exe');
    expect(visible('a\u0000b\rc\u200Bd\uFEFF')).toBe('a⟨U+0000⟩b⟨U+000D⟩c⟨U+200B⟩d⟨U+FEFF⟩');
    expect(visible('<script>')).toBe('<script>');
    expect(visible('pay\u{E0041}\u{E007F}')).toBe('pay⟨U+E0041⟩⟨U+E007F⟩');
    expect(visible('\u115F\u1160\u3164\uFFA0\u034F')).toBe('⟨U+115F⟩⟨U+1160⟩⟨U+3164⟩⟨U+FFA0⟩⟨U+034F⟩');
    expect(visible('🙂\u{E0100}')).toBe('🙂\u{E0100}');
  });
});

describe('line', () => {
  it('is one line and not too long', () => {
    expect(line('one\ntwo')).toBe('one…');
    expect(line('x'.repeat(300), 10)).toBe(`${'x'.repeat(10)}…`);
    expect(line('short')).toBe('short');
    expect(line('')).toBe('');
  });
});
