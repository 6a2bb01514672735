//! The strings that sort a message: type, source, fairness key, dedup key.

use crate::limits::{CLASS_BYTES_MAX, DEDUP_KEY_BYTES_MAX, FAIRNESS_KEY_BYTES_MAX};
use crate::text::{optional_text_type, text_type};

optional_text_type! {
    /// What a message is about, such as `invoice.paid`; called `type` outside of Rust.
    MessageType, field = "type", max = CLASS_BYTES_MAX
}

optional_text_type! {
    /// Where a message came from, such as `scraper`.
    Source, field = "source", max = CLASS_BYTES_MAX
}

optional_text_type! {
    /// The tenant whose share of the service a message uses. Keys are served in turn.
    FairnessKey, field = "fairness_key", max = FAIRNESS_KEY_BYTES_MAX
}

text_type! {
    /// The producer's own name for a piece of work.
    DedupKey, field = "dedup_key", max = DEDUP_KEY_BYTES_MAX, empty = false,
    allowed = "text without control characters", |c| !c.is_control()
}

/// How long a dedup key keeps a second message out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Uniqueness {
    /// For the queue's dedup window, counted from the enqueue, even after the ack.
    Window,
    /// While the message is delayed, ready or leased.
    UntilDone,
}

/// A dedup key and how long it holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Dedup {
    /// The producer's own name for the work.
    pub key: DedupKey,
    /// How long it keeps a second one out.
    pub unique: Uniqueness,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invalid::Problem;

    #[test]
    fn the_limits_are_inclusive_and_named() {
        assert!(FairnessKey::new("k".repeat(FAIRNESS_KEY_BYTES_MAX)).is_ok());
        let error = FairnessKey::new("k".repeat(FAIRNESS_KEY_BYTES_MAX + 1)).unwrap_err();
        assert_eq!(error.to_string(), "fairness_key: is 129 bytes long, the limit is 128");
    }

    #[test]
    fn control_characters_are_refused_where_they_stand() {
        let error = MessageType::new("a\u{7}").unwrap_err();
        assert!(matches!(error.problem, Problem::BadCharacter { at: 1, .. }), "{error}");
    }

    #[test]
    fn only_optional_texts_may_be_empty() {
        assert_eq!(Source::default().as_str(), "");
        assert_eq!(DedupKey::new("").unwrap_err().problem, Problem::Empty);
    }
}
