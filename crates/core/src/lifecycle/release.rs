//! release: leased → ready | delayed, with the attempt refunded.

use crate::message::{Phase, Progress};
use crate::time::{Millis, Timestamp};

/// Gives a message back unharmed. Without a delay it gets its old place back; with one (a snooze) it goes to the
/// back when its time comes. The delivery stays counted, so that `max_deliveries` ends endless releases.
pub fn release(progress: &mut Progress, delay: Option<Millis>, sequence: u64, now: Timestamp) {
    progress.attempts = progress.attempts.saturating_sub(1);
    progress.phase = Phase::Waiting;
    if let Some(delay) = delay {
        progress.visible_at = now.plus(delay);
        progress.sequence = sequence;
    }
}

#[cfg(test)]
mod tests {
    use super::super::attempt::tests::{at, leased, waiting};
    use super::*;

    #[test]
    fn without_a_delay_nothing_happened_but_a_delivery() {
        let mut progress = leased();
        release(&mut progress, None, 99, at(5_000));
        assert_eq!(progress, Progress { deliveries: 1, ..waiting() });
    }

    #[test]
    fn with_a_delay_it_goes_to_the_back() {
        let mut progress = leased();
        release(&mut progress, Some(Millis::ZERO), 99, at(5_000));
        assert_eq!((progress.visible_at, progress.sequence), (at(5_000), 99));
    }
}
