//! The line that every retry writes.

use redrive_core::subscription::SubscriptionId;
use redrive_core::time::Timestamp;
use redrive_store::Judged;

/// One attempt failed and will be made again. What waits in the queue of a subscription is an event, and its message has the
/// event's id.
pub(crate) fn retry(judged: &Judged, due: Timestamp) {
    retry_of(SubscriptionId::of_queue(&judged.queue).unwrap_or_default(), judged, due);
}

/// The same where the queue does not tell whose attempt it was.
pub(crate) fn retry_of(subscription: &str, judged: &Judged, due: Timestamp) {
    tracing::warn!(
        target: "redrive::retry",
        event_id = %judged.message,
        event_type = judged.kind.as_str(),
        subscription_id = subscription,
        attempt = judged.attempts,
        max_attempts = judged.max_attempts.map(std::num::NonZeroU32::get),
        delay_ms = due.since(judged.at).get(),
        error = judged.error.as_str(),
        queue = judged.queue.as_str(),
        message_id = %judged.message,
        "retry"
    );
}
