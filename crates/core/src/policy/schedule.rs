//! What a retry policy comes to, for people who write one. Nothing here computes a delay: the policy says them all.

use crate::policy::RetryPolicy;
use crate::time::Millis;

/// A retry that a policy would make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedRetry {
    /// The attempt that failed before it (1, 2, …).
    pub failed: u32,
    /// How long it waits, before jitter.
    pub delay: Millis,
    /// How long it waits at least.
    pub earliest: Millis,
    /// How long it waits at most.
    pub latest: Millis,
    /// All delays up to this one together, before jitter.
    pub after: Millis,
}

impl RetryPolicy {
    /// The retries of a message that never succeeds, in order, until the policy gives up. Without a cap there is no end.
    pub fn schedule(self) -> impl Iterator<Item = PlannedRetry> {
        let mut after = Millis::ZERO;
        (1..=u32::MAX).take_while(move |failed| !self.is_spent(*failed)).map(move |failed| {
            let delay = self.delay(failed);
            let (earliest, latest) = self.band(failed);
            after = Millis::new(after.get().saturating_add(delay.get()));
            PlannedRetry { failed, delay, earliest, latest, after }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use proptest::prelude::*;

    use super::*;
    use crate::dice::Dice;
    use crate::message::DeadReason;
    use crate::policy::retry::tests::policies;
    use crate::policy::{Asked, Failure, Sentence, sentence};

    #[test]
    fn the_default_policy_has_two_retries_a_second_and_two_after_the_failures() {
        let planned: Vec<_> = RetryPolicy::default().schedule().collect();
        let told = |one: &PlannedRetry| [one.delay, one.earliest, one.latest, one.after].map(Millis::get);
        assert_eq!(
            planned.iter().map(told).collect::<Vec<_>>(),
            [[1_000, 900, 1_100, 1_000], [2_000, 1_800, 2_200, 3_000]]
        );
        assert_eq!(planned.iter().map(|one| one.failed).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn one_attempt_is_no_retry_and_no_cap_is_no_end() {
        let policy = |max| RetryPolicy { max_attempts: NonZeroU32::new(max), ..RetryPolicy::default() };
        assert_eq!(policy(1).schedule().count(), 0);
        assert_eq!(policy(0).schedule().take(1_000).count(), 1_000);
    }

    proptest! {
        #[test]
        fn every_retry_is_the_one_that_the_judge_would_order(policy in policies(), seed: u64) {
            let mut dice = Dice::seeded(seed);
            let mut judged = |failed| sentence(&policy, failed, Failure::Nack(Asked::Nothing), &mut dice);
            let (mut last, mut sum) = (0, 0_u64);
            for planned in policy.schedule().take(50) {
                let Sentence::RetryAfter(delay, _) = judged(planned.failed) else {
                    return Err(TestCaseError::fail("the judge gives up earlier"));
                };
                prop_assert!((planned.earliest..=planned.latest).contains(&delay), "{delay} {planned:?}");
                prop_assert_eq!(planned.delay, policy.delay(planned.failed));
                sum = sum.saturating_add(planned.delay.get());
                prop_assert_eq!(planned.after.get(), sum);
                last = planned.failed;
            }
            if last < 50 {
                prop_assert_eq!(judged(last + 1), Sentence::Dead(DeadReason::MaxAttempts));
            }
        }
    }
}
