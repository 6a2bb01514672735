//! One function for each parser, in a file for each place where bytes come in.

pub mod api;
pub mod command_line;
pub mod config;
pub mod events;
pub mod journal;
pub mod json;
pub mod names;
pub mod proto;
pub mod time;

/// The text of an input, where it is one. Parsers of text are handed nothing else.
fn text(input: &[u8]) -> Option<&str> {
    std::str::from_utf8(input).ok()
}
