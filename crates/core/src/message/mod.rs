//! The message: what a producer wrote ([`Spec`]), where it stands ([`Progress`]) and what happened to it
//! ([`History`]).
//!
//! The three parts change at different times and cost different amounts to keep, so a store may hold them in
//! different places. Every rule of the lifecycle reads and writes [`Progress`] alone.

mod content;
mod failure;
mod id;
mod key;
mod priority;
mod progress;

pub use content::{Body, Checkpoint, ContentType, Headers};
pub use failure::{AttemptRecord, Cause, ErrorText, History, Note, RedriveNote};
pub use id::MessageId;
pub use key::{Dedup, DedupKey, FairnessKey, MessageType, Source, Uniqueness};
pub use priority::Priority;
pub use progress::{DeadReason, Death, Lane, Phase, Progress, State};

use std::num::NonZeroU32;

use crate::lease::Lease;
use crate::queue::QueueName;
use crate::time::{Millis, Timestamp};

/// What the producer wrote. It does not change, except that a move takes [`Spec::dedup`] off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The name of the message.
    pub id: MessageId,
    /// The payload; bytes that nobody here looks into.
    pub body: Body,
    /// What the payload is.
    pub content_type: ContentType,
    /// String pairs that travel with it.
    pub headers: Headers,
    /// What happened; consumers can ask for it.
    pub kind: MessageType,
    /// Where it came from; consumers can ask for it.
    pub source: Source,
    /// The tenant it belongs to.
    pub fairness_key: FairnessKey,
    /// The key that keeps it from being enqueued twice.
    pub dedup: Option<Dedup>,
    /// Overrides the queue's lease time.
    pub lease_timeout: Option<Millis>,
    /// Overrides the queue's cap on attempts.
    pub max_attempts: Option<NonZeroU32>,
}

/// A message as a store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The queue it is in now.
    pub queue: QueueName,
    /// What the producer wrote.
    pub spec: Spec,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// Where it stands.
    pub progress: Progress,
    /// What happened to it.
    pub history: History,
    /// The queue it was moved from, the last time it was moved.
    pub origin_queue: Option<QueueName>,
}

impl Message {
    /// The name of the message.
    pub fn id(&self) -> MessageId {
        self.spec.id
    }

    /// Its state at `now`.
    pub fn state(&self, now: Timestamp) -> State {
        self.progress.state(now)
    }

    /// Its current lease, overdue or not.
    pub fn lease(&self) -> Option<&Lease> {
        self.progress.lease()
    }
}
