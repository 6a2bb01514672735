//! Text from elsewhere on a terminal.

/// The text on one line and without anything that a terminal obeys: an error that somebody's program wrote must not
/// move the cursor, or look like a second row.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The beginning of a long text, at most so many characters.
pub(crate) fn clipped(text: &str, max: usize) -> String {
    let shown = printable(text);
    if shown.chars().count() <= max {
        return shown;
    }
    let mut shown: String = shown.chars().take(max.saturating_sub(1)).collect();
    shown.push('…');
    shown
}

/// So many of something.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_that_is_printed() {
        assert_eq!(printable("a\nb\t\u{1b}[31mred\u{202e}"), "a\\nb\\t\\u{1b}[31mred\\u{202e}");
        assert_eq!(printable("grüße 日本"), "grüße 日本");
        assert_eq!((clipped("abcdef", 6), clipped("abcdefg", 6)), ("abcdef".to_owned(), "abcde…".to_owned()));
    }
}
