//! expire: leased → delayed | ready | dead, once the deadline has passed.

use super::attempt::{Ended, Terms, end};
use crate::dice::Dice;
use crate::message::{Cause, ErrorText, Progress};
use crate::policy::Failure;
use crate::time::Timestamp;

/// What is written down as the error of an overdue lease, unless somebody says otherwise.
pub const OVERDUE_ERROR: &str = "the lease ran out";

/// Ends an overdue lease; `None`, and nothing happens, where there is none. The guard is what lets an extend
/// that raced the sweeper win.
pub fn expire(
    progress: &mut Progress,
    terms: &Terms,
    error: ErrorText,
    sequence: u64,
    now: Timestamp,
    dice: &mut Dice,
) -> Option<Ended> {
    let lease = progress.lease().filter(|lease| lease.is_overdue(now))?.clone();
    let failure = Failure::Expire { backoff: terms.overdue_backoff };
    let sentence = terms.sentence(progress.attempts, progress.deliveries_counted(), failure, dice);
    let verdict = sentence.at(now, progress.expires_at);
    Some(end(progress, lease, verdict, (Cause::Expire, error), sequence, now))
}

#[cfg(test)]
mod tests {
    use super::super::attempt::tests::{at, leased, terms};
    use super::*;
    use crate::message::State;

    fn expired(progress: &mut Progress, now: u64) -> Option<Ended> {
        expire(progress, &terms(), ErrorText::new("overdue"), 99, at(now), &mut Dice::seeded(1))
    }

    #[test]
    fn a_lease_lasts_to_its_deadline_and_not_a_millisecond_longer() {
        let mut progress = leased();
        assert_eq!(expired(&mut progress, 31_999), None);
        assert_eq!(progress, leased());
        assert!(expired(&mut progress, 32_000).is_some());
        assert_eq!(progress.state(at(32_000)), State::Ready);
    }

    #[test]
    fn nothing_but_a_lease_expires() {
        let mut progress = leased();
        expired(&mut progress, 32_000);
        let after = progress.clone();
        assert_eq!(expired(&mut progress, 99_000), None);
        assert_eq!(progress, after);
    }
}
