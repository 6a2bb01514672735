//! The end of a failed attempt: what nack, expire and bury have in common.

use std::num::NonZeroU32;

use crate::dice::Dice;
use crate::lease::Lease;
use crate::message::{AttemptRecord, Cause, DeadReason, Death, ErrorText, Phase, Progress};
use crate::policy::{Failure, RetryPolicy, Sentence, Verdict};
use crate::queue::QueueSettings;
use crate::time::Timestamp;

/// What a message is judged by: the queue's policy, with the message's own cap in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// When to retry, and how often.
    pub policy: RetryPolicy,
    /// How often it may be handed out, whoever is charged.
    pub max_deliveries: Option<NonZeroU32>,
    /// Whether an overdue lease waits for the backoff.
    pub overdue_backoff: bool,
}

impl Terms {
    /// The terms of a message with that cap of its own in a queue with those settings.
    pub fn new(settings: &QueueSettings, max_attempts: Option<NonZeroU32>) -> Self {
        let max_attempts = max_attempts.or(settings.retry.max_attempts);
        Self {
            policy: RetryPolicy { max_attempts, ..settings.retry },
            max_deliveries: settings.max_deliveries,
            overdue_backoff: settings.overdue_backoff,
        }
    }

    /// Whether another delivery would go over a cap, and over which.
    pub fn spent(&self, attempts: u32, deliveries: u32) -> Option<DeadReason> {
        if self.policy.max_attempts.is_some_and(|max| attempts >= max.get()) {
            Some(DeadReason::MaxAttempts)
        } else if self.max_deliveries.is_some_and(|max| deliveries >= max.get()) {
            Some(DeadReason::MaxDeliveries)
        } else {
            None
        }
    }

    /// What the failure of an attempt leads to, without a clock. `deliveries` are those that count.
    pub fn sentence(&self, attempts: u32, deliveries: u32, failure: Failure, dice: &mut Dice) -> Sentence {
        match self.spent(attempts, deliveries) {
            Some(reason) => Sentence::Dead(reason),
            None => crate::policy::sentence(&self.policy, attempts, failure, dice),
        }
    }
}

/// How an attempt ended: the verdict, and the line for the message's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// What it led to.
    pub verdict: Verdict,
    /// What to remember of it.
    pub record: AttemptRecord,
}

/// Carries out a verdict on a leased message. A retry goes to the back: it takes the new sequence number.
pub(super) fn end(
    progress: &mut Progress,
    lease: Lease,
    verdict: Verdict,
    (cause, error): (Cause, ErrorText),
    sequence: u64,
    now: Timestamp,
) -> Ended {
    let delay = match verdict {
        Verdict::RetryAt(due, rule) => {
            progress.phase = Phase::Waiting;
            progress.visible_at = due;
            progress.sequence = sequence;
            Some((due.since(now), rule))
        }
        Verdict::Dead(reason) => {
            progress.phase = Phase::Dead(Death::new(reason, now, error.as_str()));
            None
        }
    };
    let record = AttemptRecord {
        attempt: progress.attempts,
        consumer: lease.consumer,
        leased_at: lease.leased_at,
        ended_at: now,
        cause,
        error,
        delay,
    };
    Ended { verdict, record }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::lease::{ConsumerName, LeaseId};
    use crate::message::Priority;
    use crate::policy::Jitter;
    use crate::time::Millis;

    /// A message that was enqueued at 1,000 with sequence 1 and never leased.
    pub(in crate::lifecycle) fn waiting() -> Progress {
        Progress {
            phase: Phase::Waiting,
            visible_at: Timestamp::from_millis(1_000),
            sequence: 1,
            priority: Priority::default(),
            expires_at: None,
            attempts: 0,
            deliveries: 0,
            deliveries_before: 0,
            redrives: 0,
        }
    }

    /// The same, leased at 2,000 for 30 seconds.
    pub(in crate::lifecycle) fn leased() -> Progress {
        let mut progress = waiting();
        let id = LeaseId::from_bits(7);
        super::super::lease(&mut progress, id, ConsumerName::default(), Millis::from_secs(30), at(2_000));
        progress
    }

    /// The default terms without chance.
    pub(in crate::lifecycle) fn terms() -> Terms {
        let mut terms = Terms::new(&QueueSettings::default(), None);
        terms.policy.jitter = Jitter::None;
        terms
    }

    pub(in crate::lifecycle) fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn the_messages_own_cap_beats_the_queues() {
        let own = Terms::new(&QueueSettings::default(), NonZeroU32::new(9));
        assert_eq!(own.policy.max_attempts, NonZeroU32::new(9));
        assert_eq!(terms().policy.max_attempts, NonZeroU32::new(3));
    }

    #[test]
    fn deliveries_have_a_cap_of_their_own() {
        let terms = Terms { max_deliveries: NonZeroU32::new(5), ..terms() };
        assert_eq!(terms.spent(1, 4), None);
        assert_eq!(terms.spent(1, 5), Some(DeadReason::MaxDeliveries));
        assert_eq!(terms.spent(3, 5), Some(DeadReason::MaxAttempts));
    }
}
