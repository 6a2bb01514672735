//! What the broker tells about traces, and to whom.

use std::fmt::Debug;
use std::num::NonZeroU64;

use redrive_core::message::MessageId;
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;

use super::TraceParent;

/// Who is told about spans that ended. Called on the way of every message: it must neither wait nor fail.
pub trait Tracing: Debug + Send + Sync {
    /// A message is in its queue.
    fn sent(&self, sent: Sent<'_>);

    /// An attempt ended.
    fn attempted(&self, attempted: Attempted<'_>);
}

/// Where a span lies, in its trace and in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its trace and its own id.
    pub context: TraceParent,
    /// The span that it is a part of.
    pub parent: Option<NonZeroU64>,
    /// When it began.
    pub start: Timestamp,
    /// When it ended.
    pub end: Timestamp,
}

/// A message is in its queue.
#[derive(Debug, Clone, Copy)]
pub struct Sent<'a> {
    /// From the call to the answer of the store.
    pub span: Span,
    /// The queue.
    pub queue: &'a QueueName,
    /// The message.
    pub message: MessageId,
}

/// An attempt ended.
#[derive(Debug, Clone, Copy)]
pub struct Attempted<'a> {
    /// From the lease to its end.
    pub span: Span,
    /// The queue.
    pub queue: &'a QueueName,
    /// The message.
    pub message: MessageId,
    /// Which attempt it was.
    pub attempt: u32,
    /// How it ended.
    pub ended: HowEnded,
    /// What it failed of, if it did.
    pub failure: Option<Failure<'a>>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HowEnded {
    /// The work is done.
    Acked,
    /// It failed and will be tried again.
    Retried,
    /// It failed, and the message died of it.
    Dead,
    /// Nobody was heard of in time; the message will be tried again.
    Expired,
    /// The message went back unharmed.
    Released,
}

impl HowEnded {
    /// The stable word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Acked => "acked",
            Self::Retried => "retried",
            Self::Dead => "dead",
            Self::Expired => "expired",
            Self::Released => "released",
        }
    }
}

/// What an attempt failed of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure<'a> {
    /// `nack`, `bury` or `expire`.
    pub cause: &'static str,
    /// The error text that is kept with the message.
    pub error: &'a str,
}
