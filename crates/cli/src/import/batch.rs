//! Messages or events on their way to a server, within the limits of one call.

use redrive_core::limits::{BATCH_BYTES_MAX, BATCH_ITEMS_MAX};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// A message or an event, and the line that it stands in.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) line: u64,
    /// As it was written: nothing of it is rounded or put in another order.
    pub(super) json: Box<RawValue>,
}

/// What one call takes.
#[derive(Debug, Default)]
pub(super) struct Pile {
    pending: Vec<Pending>,
    bytes: usize,
}

impl Pile {
    /// Whether one of so many bytes goes on it.
    pub(super) fn takes(&self, bytes: usize) -> bool {
        self.pending.is_empty()
            || (self.pending.len() < BATCH_ITEMS_MAX && self.bytes + bytes <= BATCH_BYTES_MAX)
    }

    pub(super) fn push(&mut self, pending: Pending) {
        self.bytes += pending.json.get().len();
        self.pending.push(pending);
    }

    pub(super) fn take(&mut self) -> Vec<Pending> {
        self.bytes = 0;
        std::mem::take(&mut self.pending)
    }
}

/// Reads a line as what it should be, so that what is not is told by its line and not by the whole batch.
pub(crate) fn item<T: DeserializeOwned>(line: &[u8]) -> Result<Box<RawValue>, String> {
    let text = std::str::from_utf8(line).map_err(|_| "is not UTF-8".to_owned())?;
    let said = |error: serde_json::Error| {
        // Its own line is 1, and the file's is told already.
        error.to_string().replace(" at line 1 column ", " at column ")
    };
    serde_json::from_str::<redrive_wire::Object<T>>(text).map_err(said)?;
    RawValue::from_string(text.trim().to_owned()).map_err(said)
}

/// Which item of a batch a refusal points at: `/messages/3/priority`.
pub(super) fn pointed_at(field: &str, pointer: &str) -> Option<usize> {
    let place = pointer.strip_prefix('/')?.strip_prefix(field)?.strip_prefix('/')?;
    place.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use redrive_wire::NewMessage;

    use super::*;

    #[test]
    fn a_pile_stays_within_the_limits_and_takes_one_message_at_least() {
        let pending = |text: String| Pending { line: 1, json: RawValue::from_string(text).unwrap() };
        let mut pile = Pile::default();
        assert!(pile.takes(BATCH_BYTES_MAX * 2), "the server says what is too large");
        for _ in 0..BATCH_ITEMS_MAX {
            assert!(pile.takes(2));
            pile.push(pending("{}".to_owned()));
        }
        assert!(!pile.takes(2));
        assert_eq!(pile.take().len(), BATCH_ITEMS_MAX);
        pile.push(pending(format!("\"{}\"", "x".repeat(BATCH_BYTES_MAX - 4))));
        assert!(pile.takes(2) && !pile.takes(3));
    }

    #[test]
    fn a_line_is_a_message_as_it_was_written() {
        assert_eq!(
            item::<NewMessage>(br#" {"json": {"n": 1.10, "m": 2}} "#).unwrap().get(),
            r#"{"json": {"n": 1.10, "m": 2}}"#
        );
        for (line, said) in [
            (b"" as &[u8], "EOF while parsing a value at column 0"),
            (b"{\"bdy\": 1}", "unknown field `bdy`"),
            (b"[]", "invalid type: sequence, expected an object"),
            (b"{\"body\": \"a\"} x", "trailing characters at column 15"),
            (b"\xff", "is not UTF-8"),
        ] {
            let error = item::<NewMessage>(line).unwrap_err();
            assert!(error.starts_with(said), "{error}");
        }
    }

    #[test]
    fn a_pointer_names_its_message() {
        assert_eq!(pointed_at("messages", "/messages/3/priority"), Some(3));
        assert_eq!(pointed_at("messages", "/messages/0"), Some(0));
        for other in ["", "/messages", "/messages/x/a", "/other/3", "/messagesmore/3"] {
            assert_eq!(pointed_at("messages", other), None);
        }
    }
}
