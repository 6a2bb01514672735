//! Whether a command printed what the page says.
//!
//! Ids, times, receipts and tokens are other ones every time, so any two of a kind are alike. For what else changes, `…`
//! in a line stands for any text, and `…` alone on a line for any number of lines; `[..]` and `...` mean the same.

/// Shortest run of letters and digits that is a receipt or a token and no word.
const OPAQUE_CHARS_MIN: usize = 40;

/// Whether these lines are the ones that were expected.
pub(crate) fn alike(expected: &[String], got: &[String]) -> bool {
    match expected.split_first() {
        None => got.is_empty(),
        Some((line, rest)) if is_any_lines(line) => {
            (0..=got.len()).any(|skipped| alike(rest, &got[skipped..]))
        }
        Some((line, rest)) => {
            got.split_first().is_some_and(|(first, others)| same_line(line, first) && alike(rest, others))
        }
    }
}

pub(crate) fn is_any_lines(line: &str) -> bool {
    matches!(line.trim(), "…" | "..." | "[..]")
}

pub(crate) fn same_line(expected: &str, got: &str) -> bool {
    let expected = expected.replace("[..]", "…");
    let parts: Vec<String> = expected.trim_end().split('…').map(unnamed).collect();
    matches(&parts, &unnamed(got.trim_end()))
}

/// Whether the parts stand in the text, the first at its start and the last at its end, anything between them.
fn matches(parts: &[String], text: &str) -> bool {
    let Some((first, rest)) = parts.split_first() else { return text.is_empty() };
    let Some(text) = text.strip_prefix(first.as_str()) else { return false };
    match rest {
        [] => text.is_empty(),
        [last] => text.ends_with(last.as_str()),
        [next, ..] => text.match_indices(next.as_str()).any(|(at, _)| matches(rest, &text[at..])),
    }
}

/// The text with a sign in place of every id, time, receipt and token.
fn unnamed(text: &str) -> String {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
    let mut plain = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric()) {
        let end = rest[start..].find(|c| !is_inner(c)).map_or(rest.len(), |length| start + length);
        plain.push_str(&rest[..start]);
        let word = &rest[start..end];
        let trimmed = word.trim_end_matches(['.', ':', '-', '_']);
        plain.push_str(sign(trimmed).unwrap_or(trimmed));
        plain.push_str(&word[trimmed.len()..]);
        rest = &rest[end..];
    }
    plain + rest
}

fn sign(word: &str) -> Option<&'static str> {
    if is_shape(word, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") {
        return Some("<id>");
    }
    if word.len() >= OPAQUE_CHARS_MIN && !word.contains([':', '.']) {
        return Some("<opaque>");
    }
    let (date, fraction) = word.strip_suffix('Z')?.split_at_checked(19)?;
    let fraction_is_one = fraction.is_empty()
        || fraction.strip_prefix('.').is_some_and(|digits| digits.bytes().all(|c| c.is_ascii_digit()));
    (is_shape(date, "0000-00-00T00:00:00") && fraction_is_one).then_some("<time>")
}

/// Whether a word has a digit where the shape has `0`, a hex digit where it has `x`, and otherwise the same signs.
fn is_shape(word: &str, shape: &str) -> bool {
    word.len() == shape.len()
        && word.chars().zip(shape.chars()).all(|(c, wanted)| match wanted {
            '0' => c.is_ascii_digit(),
            'x' => c.is_ascii_hexdigit(),
            sign => c == sign,
        })
}
