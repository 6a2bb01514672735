//! move: any but leased → another queue.

use crate::lifecycle::redrive::revive;
use crate::message::{Message, Phase, Progress};
use crate::queue::QueueName;
use crate::time::Timestamp;

/// Whether a message may be moved: a consumer may be at work on a leased one.
pub fn may_move(progress: &Progress) -> bool {
    !matches!(progress.phase, Phase::Leased(_))
}

/// Where a message stands when it arrives in another queue. What waited goes on waiting, at the back; what was dead
/// starts anew with no attempts used; what is done stays done: an ack is not undone.
pub fn arrive(progress: &mut Progress, sequence: u64, now: Timestamp) {
    match progress.phase {
        Phase::Waiting => progress.visible_at = progress.visible_at.max(now),
        Phase::Dead(_) => revive(progress, now),
        Phase::Leased(_) | Phase::Done(_) => {}
    }
    progress.sequence = sequence;
}

/// The message as it arrives in `target`. Its dedup key stays behind: it kept duplicates out of the queue it was
/// written to.
pub fn move_to(message: &mut Message, target: QueueName, sequence: u64, now: Timestamp) {
    arrive(&mut message.progress, sequence, now);
    message.spec.dedup = None;
    message.origin_queue = Some(std::mem::replace(&mut message.queue, target));
}

#[cfg(test)]
mod tests {
    use super::super::attempt::tests::{leased, waiting};
    use super::*;

    #[test]
    fn a_lease_cannot_be_moved() {
        assert!(may_move(&waiting()));
        assert!(!may_move(&leased()));
    }
}
