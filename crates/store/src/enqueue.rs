//! enqueue: what a producer hands over, and what becomes of it.

use redrive_core::invalid::Invalid;
use redrive_core::lifecycle::Draft;
use redrive_core::message::MessageId;
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use thiserror::Error;

use crate::batch::Item;
use crate::error::{QueueNotFound, RetryAdvice};

/// A message for one queue. The caller chooses the id, so that an enqueue whose answer was lost can be repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnqueueItem {
    /// Where it goes.
    pub queue: QueueName,
    /// What it is.
    pub draft: Draft,
}

impl Item for EnqueueItem {
    fn load(&self) -> usize {
        self.draft.spec.body.bytes().len() + self.draft.spec.headers.size()
    }

    fn check(&self) -> Result<(), Invalid> {
        self.draft.check()
    }
}

/// What became of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnqueueOutcome {
    /// It is in the queue.
    Enqueued {
        /// Its id.
        id: MessageId,
        /// From when on it may be leased.
        visible_at: Timestamp,
    },
    /// The queue has it already, by its dedup key or by its id; nothing was changed.
    Duplicate {
        /// The id of the first one.
        id: MessageId,
    },
    /// It was not taken; the refusal says whether another try helps.
    Refused(EnqueueRefusal),
    /// Another item of an all-or-nothing batch was refused.
    Aborted,
}

/// Why a message was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EnqueueRefusal {
    /// There is no such queue.
    #[error(transparent)]
    QueueNotFound(#[from] QueueNotFound),
    /// As many messages are waiting as the queue allows.
    #[error("the queue is full: max_waiting is {max_waiting}")]
    QueueFull {
        /// The queue's setting.
        max_waiting: u64,
    },
    /// The queue has seen as many pairs of type and source as it may.
    #[error("type and source: a queue has at most {max} distinct pairs")]
    TooManyClasses {
        /// The limit.
        max: usize,
    },
    /// The queue holds as many dedup keys as it may.
    #[error("dedup_key: a queue holds at most {max} keys")]
    TooManyDedupKeys {
        /// The limit.
        max: usize,
    },
}

impl EnqueueRefusal {
    /// Whether a retry helps: a queue that is full now may have room later.
    pub fn advice(&self) -> RetryAdvice {
        match self {
            Self::QueueFull { .. } | Self::TooManyDedupKeys { .. } => RetryAdvice::Retry,
            Self::QueueNotFound(_) | Self::TooManyClasses { .. } => RetryAdvice::GiveUp,
        }
    }

    /// The stable word for it in APIs, metrics and logs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::QueueNotFound(_) => "QUEUE_NOT_FOUND",
            Self::QueueFull { .. } => "QUEUE_FULL",
            Self::TooManyClasses { .. } => "TOO_MANY_TYPES",
            Self::TooManyDedupKeys { .. } => "TOO_MANY_DEDUP_KEYS",
        }
    }
}
