//! The line that every retry writes.

use redrive_core::time::Timestamp;
use redrive_store::Judged;

/// One attempt failed and will be made again.
pub(crate) fn retry(judged: &Judged, due: Timestamp) {
    tracing::warn!(
        target: "redrive::retry",
        event_id = %judged.message,
        event_type = judged.kind.as_str(),
        subscription_id = "",
        attempt = judged.attempts,
        max_attempts = judged.max_attempts.map(std::num::NonZeroU32::get),
        delay_ms = due.since(judged.at).get(),
        error = judged.error.as_str(),
        queue = judged.queue.as_str(),
        message_id = %judged.message,
        "retry"
    );
}
