//! Where a message stands: the small, fixed part that every transition reads and writes.

use std::fmt;

use crate::lease::Lease;
use crate::message::Priority;
use crate::policy::Fingerprint;
use crate::time::Timestamp;

/// The state of a message as people and APIs see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Waiting for its time.
    Delayed,
    /// Waiting for a consumer.
    Ready,
    /// With a consumer.
    Leased,
    /// Given up; waiting for a person.
    Dead,
    /// Succeeded, and kept because the queue keeps such messages for a while.
    Done,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 5] = [Self::Delayed, Self::Ready, Self::Leased, Self::Dead, Self::Done];

    /// The word used in APIs, metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delayed => "delayed",
            Self::Ready => "ready",
            Self::Leased => "leased",
            Self::Dead => "dead",
            Self::Done => "done",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a message is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeadReason {
    /// Every attempt it was allowed has failed.
    MaxAttempts,
    /// A consumer said: never retry this.
    Buried,
    /// Its time to live passed, or would have passed before the next retry.
    ExpiredTtl,
    /// It was handed out as often as the queue allows, whoever was charged.
    MaxDeliveries,
    /// An earlier subscription of a sequential topic gave the event up.
    NotReached,
}

impl DeadReason {
    /// Every reason.
    pub const ALL: [Self; 5] =
        [Self::MaxAttempts, Self::Buried, Self::ExpiredTtl, Self::MaxDeliveries, Self::NotReached];

    /// The word used in APIs, metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MaxAttempts => "max_attempts",
            Self::Buried => "buried",
            Self::ExpiredTtl => "expired_ttl",
            Self::MaxDeliveries => "max_deliveries",
            Self::NotReached => "not_reached",
        }
    }
}

impl fmt::Display for DeadReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How and when a message died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Death {
    /// Why.
    pub reason: DeadReason,
    /// When.
    pub at: Timestamp,
    /// The group of failures its last error belongs to.
    pub fingerprint: Fingerprint,
}

impl Death {
    /// A death with that error as the last.
    pub fn new(reason: DeadReason, at: Timestamp, error: &str) -> Self {
        Self { reason, at, fingerprint: Fingerprint::of(error) }
    }
}

/// The state as it is stored: `delayed` and `ready` are one, told apart by the clock, so that promotion is not
/// a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Delayed until `visible_at`, ready from then on.
    Waiting,
    /// With a consumer.
    Leased(Lease),
    /// Given up.
    Dead(Death),
    /// Succeeded at that time, and kept for a while.
    Done(Timestamp),
}

/// Which of the two lanes a waiting message stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Never charged and never redriven.
    Fresh,
    /// Everything else.
    Retry,
}

impl Lane {
    /// Both lanes.
    pub const ALL: [Self; 2] = [Self::Fresh, Self::Retry];

    /// The word used in APIs, metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Retry => "retry",
        }
    }
}

/// Where a message stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Its stored state.
    pub phase: Phase,
    /// From when on it may be leased. Kept while leased, so that a release gives the place back.
    pub visible_at: Timestamp,
    /// Orders messages with the same `visible_at`; raised by the store for each that goes to the back.
    pub sequence: u64,
    /// How urgent it is among those of its key.
    pub priority: Priority,
    /// When it is too old to be of use.
    pub expires_at: Option<Timestamp>,
    /// Charged deliveries since it was enqueued or last redriven.
    pub attempts: u32,
    /// All deliveries, ever. Never goes down.
    pub deliveries: u32,
    /// What `deliveries` was when it was last redriven or dead-lettered: `max_deliveries` counts from there,
    /// or a message that died of it could never come back.
    pub deliveries_before: u32,
    /// How often it was brought back from the dead.
    pub redrives: u32,
}

impl Progress {
    /// Its state at `now`. A lease is a lease until a transition ends it, overdue or not.
    pub fn state(&self, now: Timestamp) -> State {
        match self.phase {
            Phase::Waiting if self.visible_at > now => State::Delayed,
            Phase::Waiting => State::Ready,
            Phase::Leased(_) => State::Leased,
            Phase::Dead(_) => State::Dead,
            Phase::Done(_) => State::Done,
        }
    }

    /// Its current lease, overdue or not.
    pub fn lease(&self) -> Option<&Lease> {
        match &self.phase {
            Phase::Leased(lease) => Some(lease),
            _ => None,
        }
    }

    /// How it died, if it is dead.
    pub fn death(&self) -> Option<&Death> {
        match &self.phase {
            Phase::Dead(death) => Some(death),
            _ => None,
        }
    }

    /// The lane it waits in, or was leased from.
    pub fn lane(&self) -> Lane {
        let charged_before = match self.phase {
            Phase::Leased(_) => self.attempts.saturating_sub(1),
            _ => self.attempts,
        };
        if charged_before == 0 && self.redrives == 0 { Lane::Fresh } else { Lane::Retry }
    }

    /// Deliveries that count against `max_deliveries`.
    pub fn deliveries_counted(&self) -> u32 {
        self.deliveries.saturating_sub(self.deliveries_before)
    }
}
