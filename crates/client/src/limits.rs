//! The limits of the server that a client keeps to before it speaks: on a stream, one thing that is refused ends it.

use std::time::Duration;

/// Most messages that one worker runs at a time.
pub const CONCURRENCY_MAX: u32 = 1_000;
/// Shortest lease that a worker asks for. A third of it must leave time for an extension.
pub const LEASE_TIME_MIN: Duration = Duration::from_millis(100);
/// Longest lease: seven days.
pub const LEASE_TIME_MAX: Duration = Duration::from_hours(7 * 24);
/// Longest delay: ten years.
pub const DELAY_MAX: Duration = Duration::from_hours(3_650 * 24);
/// Longest error text that is kept, in bytes; the rest is cut off.
pub const ERROR_BYTES_MAX: usize = 1_024;
/// Largest checkpoint, in bytes.
pub const CHECKPOINT_BYTES_MAX: usize = 4 * 1_024;
/// Most settlements in one call.
pub(crate) const BATCH_ITEMS_MAX: usize = 1_000;

/// As much of an error text as is kept.
pub(crate) fn cut(mut text: String) -> String {
    if text.len() > ERROR_BYTES_MAX {
        text.truncate(text.floor_char_boundary(ERROR_BYTES_MAX));
    }
    text
}

/// A span as the wire has it.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// A delay, no longer than there may be.
pub(crate) fn delay(span: Duration) -> u64 {
    millis(span.min(DELAY_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let text = cut("ä".repeat(ERROR_BYTES_MAX));
        assert_eq!(text.len(), ERROR_BYTES_MAX);
        assert_eq!(cut(format!("x{}", "ä".repeat(ERROR_BYTES_MAX))).len(), ERROR_BYTES_MAX - 1);
        assert_eq!(cut("short".to_owned()), "short");
    }
}
