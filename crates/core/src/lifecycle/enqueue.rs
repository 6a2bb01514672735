//! enqueue: nothing → ready | delayed.

use crate::invalid::Invalid;
use crate::limits::{DELAY_MAX, LEASE_MAX};
use crate::message::{History, Message, Phase, Priority, Progress, Spec};
use crate::queue::QueueName;
use crate::time::{Millis, Timestamp};

/// A point in time as a caller names it. "In five seconds" is kept as such until the clock that decides is at
/// hand, which may be the database's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum When {
    /// At once.
    #[default]
    Now,
    /// After this much time.
    After(Millis),
    /// At this time; at once if it has passed.
    At(Timestamp),
}

impl When {
    /// Refuses a wait beyond [`DELAY_MAX`], naming `field`.
    pub fn check(self, field: &'static str) -> Result<(), Invalid> {
        match self {
            Self::After(delay) => delay.within(field, Millis::ZERO, DELAY_MAX).map(|_| ()),
            Self::Now | Self::At(_) => Ok(()),
        }
    }

    /// The time it means, never before `now`.
    pub fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Now => now,
            Self::After(delay) => now.plus(delay),
            Self::At(time) => time.max(now),
        }
    }
}

/// A message that a producer wants to enqueue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// What it carries.
    pub spec: Spec,
    /// How urgent it is among those of its key.
    pub priority: Priority,
    /// From when on it may be leased.
    pub visible: When,
    /// When it is too old to be of use.
    pub expires: Option<When>,
}

impl Draft {
    /// Refuses times beyond their limits, naming the field.
    pub fn check(&self) -> Result<(), Invalid> {
        self.visible.check("delay")?;
        self.expires.unwrap_or_default().check("ttl")?;
        let lease = self.spec.lease_timeout.unwrap_or(LEASE_MAX);
        lease.within("lease_timeout", Millis::new(1), LEASE_MAX).map(|_| ())
    }
}

/// The message as it enters the queue.
pub fn enqueue(draft: Draft, queue: QueueName, sequence: u64, now: Timestamp) -> Message {
    Message {
        queue,
        spec: draft.spec,
        created_at: now,
        progress: Progress {
            phase: Phase::Waiting,
            visible_at: draft.visible.at(now),
            sequence,
            priority: draft.priority,
            expires_at: draft.expires.map(|expires| expires.at(now)),
            attempts: 0,
            deliveries: 0,
            deliveries_before: 0,
            redrives: 0,
        },
        history: History::default(),
        origin_queue: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_has_passed_means_now() {
        let now = Timestamp::from_millis(50);
        assert_eq!(When::At(Timestamp::from_millis(10)).at(now), now);
        assert_eq!(When::After(Millis::new(u64::MAX)).at(now), Timestamp::MAX);
    }
}
