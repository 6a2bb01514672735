//! The judge: the one function that decides what a failure leads to.
//!
//! It speaks in two halves. [`sentence`] needs no clock: how long to wait, or why to give up. [`Sentence::at`]
//! turns that into a time, and needs nothing but a comparison. A store whose database owns the clock passes the
//! sentence along and lets the database add it to its own now; every other caller uses [`judge`], which is both.

use crate::dice::Dice;
use crate::invalid::Invalid;
use crate::limits::DELAY_MAX;
use crate::message::DeadReason;
use crate::policy::RetryPolicy;
use crate::time::{Millis, Timestamp};

/// What the caller wants the delay to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Asked {
    /// Nothing: the policy decides.
    #[default]
    Nothing,
    /// Not before this much time, as `Retry-After` says; the policy may say longer.
    AtLeast(Millis),
    /// Exactly this much time, whatever the policy says.
    Exactly(Millis),
}

impl Asked {
    /// Refuses a delay beyond [`DELAY_MAX`].
    pub fn check(self) -> Result<(), Invalid> {
        match self {
            Self::Nothing => Ok(()),
            Self::AtLeast(delay) | Self::Exactly(delay) => {
                delay.within("delay", Millis::ZERO, DELAY_MAX).map(|_| ())
            }
        }
    }
}

/// How an attempt failed, as far as the judge cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// A consumer said so.
    Nack(Asked),
    /// The lease ran out. Unless the queue wants backoff for that, it is ready again at once: a dead consumer
    /// says nothing about the message.
    Expire {
        /// Whether the queue wants backoff for overdue leases.
        backoff: bool,
    },
}

/// Which rule chose a delay; kept with the failed attempt, so that a person can see why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DelayRule {
    /// The policy's backoff.
    Backoff,
    /// The caller asked for at least this much, and it was more than the backoff.
    AtLeast,
    /// The caller asked for exactly this.
    Exactly,
    /// The lease ran out, and the queue wants no backoff for that.
    Overdue,
}

impl DelayRule {
    /// The word used in APIs and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Backoff => "backoff",
            Self::AtLeast => "at_least",
            Self::Exactly => "exactly",
            Self::Overdue => "overdue",
        }
    }
}

/// What a failure leads to, before anybody looks at a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sentence {
    /// Wait this long, by that rule.
    RetryAfter(Millis, DelayRule),
    /// Give up.
    Dead(DeadReason),
}

/// What a failure leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Not before this time, by that rule.
    RetryAt(Timestamp, DelayRule),
    /// Give up.
    Dead(DeadReason),
}

impl Sentence {
    /// The verdict at `now`: a retry that would come after the message's time to live is no retry.
    pub fn at(self, now: Timestamp, expires_at: Option<Timestamp>) -> Verdict {
        match self {
            Self::Dead(reason) => Verdict::Dead(reason),
            Self::RetryAfter(delay, rule) => {
                let due = now.plus(delay);
                match expires_at {
                    Some(expires_at) if due >= expires_at => Verdict::Dead(DeadReason::ExpiredTtl),
                    _ => Verdict::RetryAt(due, rule),
                }
            }
        }
    }
}

/// What the failure of attempt number `attempts` leads to, without a clock.
pub fn sentence(policy: &RetryPolicy, attempts: u32, failure: Failure, dice: &mut Dice) -> Sentence {
    if policy.is_spent(attempts) {
        return Sentence::Dead(DeadReason::MaxAttempts);
    }
    let (delay, rule) = match failure {
        Failure::Nack(Asked::Exactly(asked)) => (asked, DelayRule::Exactly),
        Failure::Expire { backoff: false } => (Millis::ZERO, DelayRule::Overdue),
        Failure::Nack(Asked::Nothing) | Failure::Expire { backoff: true } => {
            (policy.jittered(attempts, dice), DelayRule::Backoff)
        }
        Failure::Nack(Asked::AtLeast(asked)) => {
            let backoff = policy.jittered(attempts, dice);
            if asked > backoff { (asked, DelayRule::AtLeast) } else { (backoff, DelayRule::Backoff) }
        }
    };
    Sentence::RetryAfter(delay, rule)
}

/// What the failure of attempt number `attempts` leads to.
pub fn judge(
    policy: &RetryPolicy,
    attempts: u32,
    failure: Failure,
    expires_at: Option<Timestamp>,
    now: Timestamp,
    dice: &mut Dice,
) -> Verdict {
    sentence(policy, attempts, failure, dice).at(now, expires_at)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use proptest::prelude::*;

    use super::*;
    use crate::policy::retry::tests::policies;

    fn failures() -> impl Strategy<Value = Failure> {
        prop_oneof![
            Just(Failure::Nack(Asked::Nothing)),
            any::<u64>().prop_map(|ms| Failure::Nack(Asked::AtLeast(Millis::new(ms)))),
            any::<u64>().prop_map(|ms| Failure::Nack(Asked::Exactly(Millis::new(ms)))),
            any::<bool>().prop_map(|backoff| Failure::Expire { backoff }),
        ]
    }

    fn times() -> impl Strategy<Value = Timestamp> {
        (0..=Timestamp::MAX.as_millis()).prop_map(Timestamp::from_millis)
    }

    proptest! {
        #[test]
        fn nothing_a_user_can_write_panics_or_comes_early(
            policy in policies(), attempts: u32, failure in failures(),
            expires_at in proptest::option::of(times()), now in times(), seed: u64,
        ) {
            match judge(&policy, attempts, failure, expires_at, now, &mut Dice::seeded(seed)) {
                Verdict::RetryAt(due, _) => {
                    prop_assert!(due >= now);
                    prop_assert!(expires_at.is_none_or(|expires_at| due < expires_at));
                    prop_assert!(policy.max_attempts.is_none_or(|max| attempts < max.get()));
                }
                Verdict::Dead(DeadReason::MaxAttempts) => {
                    prop_assert!(policy.max_attempts.is_some_and(|max| attempts >= max.get()));
                }
                Verdict::Dead(reason) => prop_assert_eq!(reason, DeadReason::ExpiredTtl),
            }
        }

        #[test]
        fn an_exact_delay_is_exact(policy in policies(), asked in 0..DELAY_MAX.get(), seed: u64) {
            let policy = RetryPolicy { max_attempts: None, ..policy };
            let asked = Millis::new(asked);
            let sentence = sentence(&policy, 1, Failure::Nack(Asked::Exactly(asked)), &mut Dice::seeded(seed));
            prop_assert_eq!(sentence, Sentence::RetryAfter(asked, DelayRule::Exactly));
        }

        #[test]
        fn asking_for_at_least_gives_the_longer_of_the_two(policy in policies(), attempts: u32, asked: u64, seed: u64) {
            let policy = RetryPolicy { max_attempts: None, ..policy };
            let backoff = policy.jittered(attempts, &mut Dice::seeded(seed));
            let failure = Failure::Nack(Asked::AtLeast(Millis::new(asked)));
            let Sentence::RetryAfter(delay, _) = sentence(&policy, attempts, failure, &mut Dice::seeded(seed)) else {
                return Err(TestCaseError::fail("died without a cap"));
            };
            prop_assert_eq!(delay, backoff.max(Millis::new(asked)));
        }

        #[test]
        fn n_attempts_at_most(max in 1u32..50, attempts in 1u32..60) {
            let policy = RetryPolicy { max_attempts: NonZeroU32::new(max), ..RetryPolicy::default() };
            let verdict = sentence(&policy, attempts, Failure::Nack(Asked::Nothing), &mut Dice::seeded(0));
            prop_assert_eq!(verdict == Sentence::Dead(DeadReason::MaxAttempts), attempts >= max);
        }
    }

    #[test]
    fn an_overdue_lease_is_ready_at_once_unless_the_queue_wants_backoff() {
        let policy = RetryPolicy { jitter: crate::policy::Jitter::None, ..RetryPolicy::default() };
        let mut dice = Dice::seeded(0);
        let at_once = sentence(&policy, 2, Failure::Expire { backoff: false }, &mut dice);
        assert_eq!(at_once, Sentence::RetryAfter(Millis::ZERO, DelayRule::Overdue));
        let later = sentence(&policy, 2, Failure::Expire { backoff: true }, &mut dice);
        assert_eq!(later, Sentence::RetryAfter(Millis::from_secs(2), DelayRule::Backoff));
    }

    #[test]
    fn a_retry_due_when_the_message_is_too_old_is_dead_now() {
        let now = Timestamp::from_millis(1_000);
        let retry = Sentence::RetryAfter(Millis::new(10), DelayRule::Backoff);
        assert_eq!(retry.at(now, Some(Timestamp::from_millis(1_010))), Verdict::Dead(DeadReason::ExpiredTtl));
        let in_time = Verdict::RetryAt(Timestamp::from_millis(1_010), DelayRule::Backoff);
        assert_eq!(retry.at(now, Some(Timestamp::from_millis(1_011))), in_time);
    }
}
