//! Why the broker did not do what it was asked.

use redrive_core::invalid::Invalid;
use redrive_core::queue::QueueName;
use redrive_core::receipt::InvalidReceipt;
use redrive_store::{QueueError, QueueNotFound, RetryAdvice, StoreError};
use thiserror::Error;

use crate::operations::OperationId;

/// Why the broker did not do what it was asked. Nothing happened, unless the store says that it does not know.
#[derive(Debug, Error)]
pub enum BrokerError {
    /// The store, or a rule about queues, said no.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The receipt is not one of this store's.
    #[error(transparent)]
    InvalidReceipt(#[from] InvalidReceipt),
    /// The broker ends.
    #[error("the broker is shutting down")]
    Stopping,
    /// As many polls wait as may.
    #[error("polls: the limit is {max}")]
    TooManyPolls {
        /// The limit.
        max: usize,
    },
    /// There is no such message in that queue.
    #[error("there is no such message in {0}")]
    MessageNotFound(QueueName),
    /// There is no such operation.
    #[error("there is no operation {0}")]
    OperationNotFound(OperationId),
    /// The operation has come to its end.
    #[error("operation {0} has ended")]
    OperationEnded(OperationId),
    /// As many operations are under way as may be.
    #[error("operations: the limit is {max}")]
    TooManyOperations {
        /// The limit.
        max: usize,
    },
    /// The idempotency key was used with another body.
    #[error("the idempotency key was used with another message")]
    KeyReused,
    /// The queue has no breaker.
    #[error("{0} has no breaker")]
    NoBreaker(QueueName),
    /// The machine has no randomness.
    #[error("no randomness: {0}")]
    NoChance(#[from] getrandom::Error),
}

impl BrokerError {
    /// Whether a retry helps.
    pub fn advice(&self) -> RetryAdvice {
        match self {
            Self::Queue(error) => error.advice(),
            Self::Stopping
            | Self::TooManyPolls { .. }
            | Self::TooManyOperations { .. }
            | Self::NoChance(_) => RetryAdvice::Retry,
            Self::InvalidReceipt(_)
            | Self::MessageNotFound(_)
            | Self::OperationNotFound(_)
            | Self::OperationEnded(_)
            | Self::KeyReused
            | Self::NoBreaker(_) => RetryAdvice::GiveUp,
        }
    }

    /// The stable word for it in APIs, metrics and logs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Queue(error) => error.code(),
            Self::InvalidReceipt(_) => InvalidReceipt::CODE,
            Self::Stopping => "SHUTTING_DOWN",
            Self::TooManyPolls { .. } => "TOO_MANY_POLLS",
            Self::MessageNotFound(_) => "NOT_FOUND",
            Self::OperationNotFound(_) => "OPERATION_NOT_FOUND",
            Self::OperationEnded(_) => "OPERATION_ENDED",
            Self::TooManyOperations { .. } => "TOO_MANY_OPERATIONS",
            Self::KeyReused => "IDEMPOTENCY_KEY_REUSED",
            Self::NoBreaker(_) => "NO_BREAKER",
            Self::NoChance(_) => "UNAVAILABLE",
        }
    }
}

impl From<StoreError> for BrokerError {
    fn from(error: StoreError) -> Self {
        Self::Queue(error.into())
    }
}

impl From<Invalid> for BrokerError {
    fn from(invalid: Invalid) -> Self {
        Self::Queue(invalid.into())
    }
}

impl From<QueueNotFound> for BrokerError {
    fn from(missing: QueueNotFound) -> Self {
        Self::Queue(missing.into())
    }
}
