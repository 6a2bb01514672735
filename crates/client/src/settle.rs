//! What a consumer says about a lease, and what becomes of it.

use std::time::Duration;

use bytes::Bytes;
use redrive_wire::v1;

use crate::error::{LeaseLost, NoSuchLease, SettleError};
use crate::limits::{cut, delay, millis};

/// What a consumer says about a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settle {
    /// The work is done.
    Ack {
        /// Which lease.
        receipt: String,
    },
    /// The work failed; the queue's policy judges what becomes of it.
    Nack {
        /// Which lease.
        receipt: String,
        /// What went wrong; what is over [`ERROR_BYTES_MAX`](crate::ERROR_BYTES_MAX) is cut off.
        error: String,
        /// Not before this much time.
        delay: Option<Duration>,
    },
    /// The work takes longer.
    Extend {
        /// Which lease.
        receipt: String,
        /// For how long from now.
        time: Duration,
        /// Where to go on from, for whoever tries next.
        checkpoint: Option<Bytes>,
    },
    /// The message goes back unharmed, with its attempt refunded.
    Release {
        /// Which lease.
        receipt: String,
        /// Not before this much time.
        delay: Option<Duration>,
    },
    /// The work must never be tried again.
    Bury {
        /// Which lease.
        receipt: String,
        /// Why.
        reason: String,
    },
}

/// Why a settlement was not applied. Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The message is there, but this lease of it is not current.
    LeaseLost,
    /// The message is not there any more.
    NotFound,
    /// The receipt is none of this broker's.
    InvalidReceipt,
}

impl From<Refusal> for SettleError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::LeaseLost => LeaseLost.into(),
            Refusal::NotFound => NoSuchLease.into(),
            Refusal::InvalidReceipt => Self::InvalidReceipt,
        }
    }
}

/// What became of a settlement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settled {
    /// Which lease it was about.
    pub receipt: String,
    /// Why it was not applied, if it was not.
    pub refusal: Option<Refusal>,
    /// The new deadline in milliseconds since the Unix epoch, after an extension.
    pub deadline_ms: Option<u64>,
    /// What was decided, after a nack, a release or a bury.
    pub verdict: Verdict,
}

/// What was decided about a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// `delayed`, `ready` or `dead`; empty after a release that went well.
    pub state: String,
    /// When it is tried again, in milliseconds since the Unix epoch.
    pub visible_at_ms: Option<u64>,
    /// Why it is dead, where it is.
    pub dead_reason: String,
    /// The queue that it was moved to, where it was.
    pub moved_to: String,
}

impl From<v1::SettleResult> for Settled {
    fn from(result: v1::SettleResult) -> Self {
        let refusal = match result.code.as_str() {
            "" => None,
            "LEASE_LOST" => Some(Refusal::LeaseLost),
            "INVALID_RECEIPT" => Some(Refusal::InvalidReceipt),
            _ => Some(Refusal::NotFound),
        };
        let verdict = Verdict {
            state: result.state,
            visible_at_ms: result.visible_at_ms,
            dead_reason: result.dead_reason,
            moved_to: result.moved_to,
        };
        Self { receipt: result.receipt, refusal, deadline_ms: result.deadline_ms, verdict }
    }
}

/// As the wire has them: each kind by itself.
pub(crate) fn batch(settles: Vec<Settle>) -> v1::ConsumeSettle {
    let mut batch = v1::ConsumeSettle::default();
    for settle in settles {
        match settle {
            Settle::Ack { receipt } => batch.acks.push(v1::Ack { receipt }),
            Settle::Nack { receipt, error, delay } => batch.nacks.push(nack(receipt, error, delay)),
            Settle::Extend { receipt, time, checkpoint } => {
                batch.extends.push(v1::Extend { receipt, lease_ms: Some(millis(time)), checkpoint });
            }
            Settle::Release { receipt, delay } => batch.releases.push(release(receipt, delay)),
            Settle::Bury { receipt, reason } => batch.buries.push(v1::Bury { receipt, error: cut(reason) }),
        }
    }
    batch
}

pub(crate) fn nack(receipt: String, error: String, asked: Option<Duration>) -> v1::Nack {
    v1::Nack { receipt, error: cut(error), delay_ms: asked.map(delay), exact: false, checkpoint: None }
}

pub(crate) fn release(receipt: String, asked: Option<Duration>) -> v1::Release {
    v1::Release { receipt, delay_ms: asked.map(delay) }
}
