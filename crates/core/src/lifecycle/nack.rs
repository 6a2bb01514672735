//! nack: leased → delayed | ready | dead.

use super::attempt::{Ended, Terms, end};
use crate::dice::Dice;
use crate::lease::Lease;
use crate::message::{Cause, ErrorText, Progress};
use crate::policy::{Asked, Failure};
use crate::time::Timestamp;

/// Ends an attempt that its consumer says failed.
pub fn nack(
    progress: &mut Progress,
    lease: Lease,
    terms: &Terms,
    (asked, error): (Asked, ErrorText),
    sequence: u64,
    now: Timestamp,
    dice: &mut Dice,
) -> Ended {
    let sentence =
        terms.sentence(progress.attempts, progress.deliveries_counted(), Failure::Nack(asked), dice);
    let verdict = sentence.at(now, progress.expires_at);
    end(progress, lease, verdict, (Cause::Nack, error), sequence, now)
}

#[cfg(test)]
mod tests {
    use super::super::attempt::tests::{at, leased, terms};
    use super::*;
    use crate::message::{DeadReason, Lane, Phase};
    use crate::policy::{DelayRule, Verdict};
    use crate::time::Millis;

    fn nacked(mut progress: Progress, terms: &Terms) -> (Progress, Ended) {
        let lease = progress.lease().unwrap().clone();
        let failure = (Asked::Nothing, ErrorText::new("boom"));
        let ended = nack(&mut progress, lease, terms, failure, 99, at(5_000), &mut Dice::seeded(1));
        (progress, ended)
    }

    #[test]
    fn a_retry_waits_for_its_backoff_at_the_back() {
        let (progress, ended) = nacked(leased(), &terms());
        assert_eq!(progress.phase, Phase::Waiting);
        assert_eq!((progress.visible_at, progress.sequence), (at(6_000), 99));
        assert_eq!(progress.lane(), Lane::Retry);
        assert_eq!(ended.record.delay, Some((Millis::new(1_000), DelayRule::Backoff)));
        assert_eq!((ended.record.attempt, ended.record.ended_at), (1, at(5_000)));
    }

    #[test]
    fn the_last_attempt_is_the_last() {
        let mut progress = leased();
        progress.attempts = 3;
        let (progress, ended) = nacked(progress, &terms());
        assert_eq!(ended.verdict, Verdict::Dead(DeadReason::MaxAttempts));
        assert_eq!(progress.death().unwrap().at, at(5_000));
        assert_eq!(ended.record.delay, None);
    }
}
