//! Why there was no answer, in words.
//!
//! Dead letters are grouped by these words, so the same failure says the same each time; and they are shown to people, so
//! nothing of the URL is in them: its path may be a secret.

use std::error::Error;
use std::iter;

use redrive_core::time::Millis;

use super::resolve::Unresolved;

/// Longest text of somebody else's that is repeated, in bytes. A certificate may name a hundred hosts.
const CAUSE_BYTES_MAX: usize = 300;

/// What a failed request is called.
pub(super) fn said(error: &reqwest::Error, connect_timeout: Millis) -> String {
    if let Some(unresolved) = causes(error).find_map(|cause| cause.downcast_ref::<Unresolved>()) {
        return cut(unresolved.to_string());
    }
    if error.is_connect() && error.is_timeout() {
        return format!("could not connect within {}", span(connect_timeout));
    }
    // The outer ones only say that something went wrong, and where it was sent.
    let cause = causes(error).last().map_or_else(|| "unknown".to_owned(), ToString::to_string);
    let what = if error.is_connect() { "could not connect" } else { "no answer" };
    cut(format!("{what}: {cause}"))
}

/// What a request is called that had its time.
pub(super) fn timed_out(timeout: Millis) -> String {
    format!("timed out after {}", span(timeout))
}

fn span(time: Millis) -> String {
    match time.get() {
        ms if ms % 1_000 == 0 => format!("{} s", ms / 1_000),
        ms => format!("{ms} ms"),
    }
}

/// What is behind an error, from the outside to the inside.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    iter::successors(error.source(), |&cause| cause.source())
}

fn cut(mut text: String) -> String {
    if text.len() > CAUSE_BYTES_MAX {
        text.truncate(text.floor_char_boundary(CAUSE_BYTES_MAX));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_said_in_seconds_where_it_can_be() {
        assert_eq!(timed_out(Millis::from_secs(30)), "timed out after 30 s");
        assert_eq!(timed_out(Millis::new(1_500)), "timed out after 1500 ms");
        assert_eq!(cut("ü".repeat(200)), format!("{}…", "ü".repeat(150)));
    }
}
