//! ack: leased → gone | done.

use crate::message::{Phase, Progress};
use crate::time::Timestamp;

/// Marks a message as done, where the queue keeps such messages; where it does not, the store removes it.
pub fn ack(progress: &mut Progress, now: Timestamp) {
    progress.phase = Phase::Done(now);
}
