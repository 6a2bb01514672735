// Text of others without the characters that change how the rest of it is read.

// Controls but for line feed and tab, marks that turn the direction of writing, those that take no room, letters that look like a space,
// and the tags in which a whole text can hide.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** The text with each such character as its number, `⟨U+202E⟩`. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (character) => `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
}

/** The first line of a text, not longer than this many characters. */
export function line(text: string, most = 200): string {
  const first = text.slice(0, most + 1).split('\n', 1)[0] ?? '';
  const cut = first.length < text.length || first.length > most;
  return visible(first.slice(0, most)) + (cut ? '…' : '');
}
