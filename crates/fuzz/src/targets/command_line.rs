//! What the commands read: spans that people type, and the events that a server sends.

use super::text;
use crate::trial::note;

/// A span of time.
pub fn span(input: &[u8]) {
    if let Some(Err(problem)) = text(input).map(redrive_cli::spanned) {
        note(problem);
    }
}

/// A stream of events; the first byte says where it is cut.
pub fn events(input: &[u8]) {
    if let Some((cut, stream)) = input.split_first()
        && let Err(problem) = redrive_cli::streamed(stream, usize::from(*cut))
    {
        note(problem);
    }
}
