//! redrive: dead → ready.

use crate::message::{Phase, Progress};
use crate::time::Timestamp;

/// Brings a dead message back; `false`, and nothing happens, for any other.
pub fn redrive(progress: &mut Progress, sequence: u64, now: Timestamp) -> bool {
    if progress.death().is_none() {
        return false;
    }
    revive(progress, now);
    progress.sequence = sequence;
    progress.redrives = progress.redrives.saturating_add(1);
    true
}

/// Makes a message ready with all its attempts before it. A time to live that has passed is taken off, and
/// deliveries are counted anew: what killed it before must not kill it again at once.
pub(super) fn revive(progress: &mut Progress, now: Timestamp) {
    progress.phase = Phase::Waiting;
    progress.visible_at = now;
    progress.attempts = 0;
    progress.deliveries_before = progress.deliveries;
    progress.expires_at = progress.expires_at.filter(|expires_at| *expires_at > now);
}

#[cfg(test)]
mod tests {
    use super::super::attempt::tests::{at, leased, terms, waiting};
    use super::super::{bury, lapse, lapse_reason, may_lease};
    use super::*;
    use crate::message::{DeadReason, ErrorText, Lane};

    #[test]
    fn a_redriven_message_starts_anew_in_the_retry_lane() {
        let mut progress = leased();
        let lease = progress.lease().unwrap().clone();
        bury(&mut progress, lease, (DeadReason::Buried, ErrorText::new("no")), at(5_000));
        assert!(redrive(&mut progress, 99, at(9_000)));
        assert_eq!((progress.attempts, progress.deliveries, progress.redrives), (0, 1, 1));
        assert_eq!((progress.visible_at, progress.sequence), (at(9_000), 99));
        assert_eq!(progress.lane(), Lane::Retry);
    }

    #[test]
    fn what_killed_it_does_not_kill_it_again() {
        let mut old = Progress { expires_at: Some(at(2_000)), deliveries: 7, ..waiting() };
        let reason = lapse_reason(&old, &terms(), at(2_000)).unwrap();
        lapse(&mut old, reason, None, at(2_000));
        redrive(&mut old, 99, at(3_000));
        let mut strict = terms();
        strict.max_deliveries = std::num::NonZeroU32::new(1);
        assert!(may_lease(&old, &strict, at(3_000)));
        assert_eq!(old.deliveries, 7, "deliveries never go down");
    }

    #[test]
    fn only_the_dead_are_redriven() {
        let mut progress = waiting();
        assert!(!redrive(&mut progress, 99, at(3_000)));
        assert_eq!(progress, waiting());
    }
}
