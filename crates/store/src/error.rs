//! What can go wrong: a struct for each fact, an enum for each kind of call, and for all of them an answer to
//! "does a retry help?".

use std::error::Error;

use redrive_core::invalid::Invalid;
use redrive_core::queue::QueueName;
use thiserror::Error;

/// What a caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAdvice {
    /// Nothing happened; the same call may work in a moment.
    Retry,
    /// It may have happened. Look before you repeat it, or repeat what is safe to repeat: a settle with the same
    /// receipt; an enqueue under the same id, as long as nobody can have acked the first one yet.
    Ask,
    /// The same call will fail again.
    GiveUp,
}

/// The cause underneath, as the backend tells it.
pub type Cause = Box<dyn Error + Send + Sync>;

/// The store could not do what it was asked, whatever it was asked.
#[derive(Debug, Error)]
pub enum StoreError {
    /// It was not reached, or said no before it did anything.
    #[error("the store is not available: {0}")]
    Unavailable(#[source] Cause),
    /// It was asked and the answer was lost.
    #[error("the outcome is unknown: {0}")]
    OutcomeUnknown(#[source] Cause),
    /// There is no room for another message. Lease, settle and discard still work.
    #[error("the storage is full")]
    StorageFull,
    /// It stopped after a failure that it cannot judge, and must be opened again.
    #[error("the store has stopped: {0}")]
    Stopped(#[source] Cause),
    /// What it keeps is not what it wrote.
    #[error("{location} is damaged: {problem}")]
    Damaged {
        /// The file and offset, row or key.
        location: String,
        /// What is wrong there.
        problem: String,
    },
    /// This backend cannot do it; `Capabilities` says so.
    #[error("{backend} does not support {what}")]
    Unsupported {
        /// The name of the backend.
        backend: &'static str,
        /// What was asked of it.
        what: &'static str,
    },
    /// A number that can never be given out twice has run out.
    #[error("the store has no {0} left")]
    Exhausted(&'static str),
}

impl StoreError {
    /// Whether a retry helps.
    pub fn advice(&self) -> RetryAdvice {
        match self {
            Self::Unavailable(_) | Self::StorageFull => RetryAdvice::Retry,
            Self::OutcomeUnknown(_) => RetryAdvice::Ask,
            Self::Stopped(_) | Self::Damaged { .. } | Self::Unsupported { .. } | Self::Exhausted(_) => {
                RetryAdvice::GiveUp
            }
        }
    }

    /// The stable word for it in APIs, metrics and logs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "UNAVAILABLE",
            Self::OutcomeUnknown(_) => "OUTCOME_UNKNOWN",
            Self::StorageFull => "STORAGE_FULL",
            Self::Stopped(_) => "STORE_STOPPED",
            Self::Damaged { .. } => "STORE_DAMAGED",
            Self::Unsupported { .. } => "UNSUPPORTED",
            Self::Exhausted(_) => "STORE_EXHAUSTED",
        }
    }
}

/// There is no queue of that name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no queue {0}")]
pub struct QueueNotFound(pub QueueName);

/// A call that names a queue failed; nothing was changed, unless the store says that it does not know.
#[derive(Debug, Error)]
pub enum QueueError {
    /// There is no queue of that name.
    #[error(transparent)]
    NotFound(#[from] QueueNotFound),
    /// A queue of that name is there already.
    #[error("there is a queue {0} already")]
    AlreadyExists(QueueName),
    /// The queue was changed since the caller looked.
    #[error("the queue is at version {actual}, not {expected}")]
    VersionMismatch {
        /// What the caller saw.
        expected: u64,
        /// What it is now.
        actual: u64,
    },
    /// The queue still has messages.
    #[error("the queue still has {messages} messages")]
    NotEmpty {
        /// How many, in any state.
        messages: u64,
    },
    /// Dead letters would go round in a circle.
    #[error("dead_letter_to: {0} would lead back to the queue itself")]
    DeadLetterCycle(QueueName),
    /// The store has as many queues as it may.
    #[error("queues: the limit is {max}")]
    TooManyQueues {
        /// The limit.
        max: usize,
    },
    /// A setting breaks a rule.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl QueueError {
    /// Whether a retry helps.
    pub fn advice(&self) -> RetryAdvice {
        match self {
            Self::Store(error) => error.advice(),
            _ => RetryAdvice::GiveUp,
        }
    }

    /// The stable word for it in APIs, metrics and logs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "QUEUE_NOT_FOUND",
            Self::AlreadyExists(_) => "QUEUE_EXISTS",
            Self::VersionMismatch { .. } => "VERSION_MISMATCH",
            Self::NotEmpty { .. } => "QUEUE_NOT_EMPTY",
            Self::DeadLetterCycle(_) => "DEAD_LETTER_CYCLE",
            Self::TooManyQueues { .. } => "TOO_MANY_QUEUES",
            Self::Invalid(_) => "INVALID_ARGUMENT",
            Self::Store(error) => error.code(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_outcome_is_not_a_failure() {
        let lost = StoreError::OutcomeUnknown("reply lost".into());
        assert_eq!((lost.advice(), lost.code()), (RetryAdvice::Ask, "OUTCOME_UNKNOWN"));
        let down = StoreError::Unavailable("refused".into());
        assert_eq!((down.advice(), down.code()), (RetryAdvice::Retry, "UNAVAILABLE"));
        assert_eq!(QueueError::from(StoreError::StorageFull).advice(), RetryAdvice::Retry);
        let stopped = QueueError::from(StoreError::Stopped("sync failed".into()));
        assert_eq!(stopped.advice(), RetryAdvice::GiveUp);
    }
}
