//! ack, nack, extend, release and bury: what a consumer says about its lease, and what becomes of it.

use std::num::NonZeroU32;

use redrive_core::invalid::Invalid;
use redrive_core::lease::{ConsumerName, LeaseId};
use redrive_core::limits::{DELAY_MAX, LEASE_MAX};
use redrive_core::message::{Checkpoint, DeadReason, ErrorText, MessageId, MessageType};
use redrive_core::policy::{Asked, Verdict};
use redrive_core::queue::QueueName;
use redrive_core::receipt::Claim;
use redrive_core::time::{Millis, Timestamp};

use crate::batch::Item;

/// What became of one settlement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled<T> {
    /// It was applied.
    Applied(T),
    /// The message is there, but this lease of it is not current. Nothing was changed.
    LeaseLost,
    /// The message is not there, or was settled before. Nothing was changed.
    NotFound,
    /// Another item of an all-or-nothing batch was not applied.
    Aborted,
}

impl<T> Settled<T> {
    /// What was applied.
    pub fn applied(self) -> Option<T> {
        match self {
            Self::Applied(done) => Some(done),
            _ => None,
        }
    }

    /// The stable word for why it was not applied, in APIs, metrics and logs.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Applied(_) => None,
            Self::LeaseLost => Some("LEASE_LOST"),
            Self::NotFound => Some("NOT_FOUND"),
            Self::Aborted => Some("ABORTED"),
        }
    }

    /// Whether it was applied.
    pub fn is_applied(&self) -> bool {
        matches!(self, Self::Applied(_))
    }
}

/// Which lease is meant: the one a receipt claims, or, for an operator, the one it saw, or whichever is current.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseTarget {
    /// The lease of a receipt.
    Claim(Claim),
    /// The current lease of a message.
    Current {
        /// Its queue.
        queue: QueueName,
        /// Its id.
        message: MessageId,
    },
    /// This lease of a message, as somebody saw it who has no receipt.
    Seen {
        /// Its queue.
        queue: QueueName,
        /// Its id.
        message: MessageId,
        /// The lease it must be under.
        lease: LeaseId,
    },
}

impl LeaseTarget {
    /// The queue of the message.
    pub fn queue(&self) -> &QueueName {
        match self {
            Self::Claim(claim) => &claim.queue,
            Self::Current { queue, .. } | Self::Seen { queue, .. } => queue,
        }
    }

    /// The message.
    pub fn message(&self) -> MessageId {
        match self {
            Self::Claim(claim) => claim.message,
            Self::Current { message, .. } | Self::Seen { message, .. } => *message,
        }
    }

    /// The lease it must be; `None` where any is meant.
    pub fn lease(&self) -> Option<LeaseId> {
        match self {
            Self::Claim(claim) => Some(claim.lease),
            Self::Seen { lease, .. } => Some(*lease),
            Self::Current { .. } => None,
        }
    }
}

/// The work is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AckItem {
    /// Which lease.
    pub claim: Claim,
}

/// The work failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NackItem {
    /// Which lease.
    pub claim: Claim,
    /// When the consumer wants it back.
    pub asked: Asked,
    /// What went wrong.
    pub error: ErrorText,
    /// Where to go on from; `None` keeps the last one.
    pub checkpoint: Option<Checkpoint>,
}

/// The work takes longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtendItem {
    /// Which lease.
    pub target: LeaseTarget,
    /// For how long from now.
    pub time: Millis,
    /// Where to go on from; `None` keeps the last one.
    pub checkpoint: Option<Checkpoint>,
}

/// The message goes back unharmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseItem {
    /// Which lease.
    pub target: LeaseTarget,
    /// Not before this much time; `None` gives it its old place back.
    pub delay: Option<Millis>,
}

/// The work must never be tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuryItem {
    /// Which lease.
    pub claim: Claim,
    /// [`DeadReason::Buried`], unless a dispatcher judged by rules of its own.
    pub reason: DeadReason,
    /// What went wrong.
    pub error: ErrorText,
}

/// What was acked, as far as the metrics want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acked {
    /// The message.
    pub message: MessageId,
    /// Its type.
    pub kind: MessageType,
    /// The attempt that succeeded.
    pub attempts: u32,
    /// When its lease was taken.
    pub leased_at: Timestamp,
    /// By whom.
    pub consumer: ConsumerName,
}

/// Where a released message stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Released {
    /// From when on it may be leased.
    pub visible_at: Timestamp,
    /// Who had it.
    pub consumer: ConsumerName,
    /// How it lapsed in the same step, because it has no delivery left.
    pub lapsed: Option<Judged>,
}

/// What a failed or lapsed message was judged to, as far as events, logs and metrics want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// When, by the clock that decided: a delay is counted from here.
    pub at: Timestamp,
    /// When the lease that ended was taken; `None` for a message that lapsed while it waited.
    pub leased_at: Option<Timestamp>,
    /// Who had it; `None` for a message that lapsed while it waited.
    pub consumer: Option<ConsumerName>,
    /// The queue it was judged in.
    pub queue: QueueName,
    /// The message.
    pub message: MessageId,
    /// Its type.
    pub kind: MessageType,
    /// The attempt that failed.
    pub attempts: u32,
    /// The cap in force.
    pub max_attempts: Option<NonZeroU32>,
    /// What went wrong.
    pub error: ErrorText,
    /// What it led to.
    pub verdict: Verdict,
    /// Where it was moved, dead, in the same step.
    pub moved_to: Option<QueueName>,
}

fn checkpoint_load(checkpoint: Option<&Checkpoint>) -> usize {
    checkpoint.map_or(0, |checkpoint| checkpoint.bytes().len())
}

impl Item for AckItem {}

impl Item for NackItem {
    fn load(&self) -> usize {
        self.error.as_str().len() + checkpoint_load(self.checkpoint.as_ref())
    }

    fn check(&self) -> Result<(), Invalid> {
        self.asked.check()
    }
}

impl Item for ExtendItem {
    fn load(&self) -> usize {
        checkpoint_load(self.checkpoint.as_ref())
    }

    fn check(&self) -> Result<(), Invalid> {
        self.time.within("time", Millis::ZERO, LEASE_MAX).map(|_| ())
    }
}

impl Item for ReleaseItem {
    fn check(&self) -> Result<(), Invalid> {
        self.delay.unwrap_or_default().within("delay", Millis::ZERO, DELAY_MAX).map(|_| ())
    }
}

impl Item for BuryItem {
    fn load(&self) -> usize {
        self.error.as_str().len()
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::queue::QueueName;

    use super::*;
    use crate::Batch;

    #[test]
    fn a_time_beyond_its_limit_is_refused_by_name() {
        let too_long = Millis::new(u64::MAX);
        let target = || LeaseTarget::Current { queue: QueueName::new("q").unwrap(), message: MessageId::MIN };
        let release = Batch::one(ReleaseItem { target: target(), delay: Some(too_long) }).unwrap_err();
        let extend =
            Batch::one(ExtendItem { target: target(), time: too_long, checkpoint: None }).unwrap_err();
        assert_eq!((release.field, extend.field), ("delay", "time"));
    }
}
