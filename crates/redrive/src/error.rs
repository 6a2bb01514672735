//! Why something was not done.

use redrive_broker::BrokerError;
use redrive_core::invalid::Invalid;
use redrive_store::{EnqueueRefusal, RetryAdvice, StoreError};
use thiserror::Error;

/// Why something was not done. Nothing happened, unless [`Error::is_outcome_unknown`].
#[derive(Debug, Error)]
pub enum Error {
    /// The broker, or the store below it, said no.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// A message was not taken.
    #[error(transparent)]
    NotEnqueued(#[from] EnqueueRefusal),
    /// The body cannot be written as JSON.
    #[error("{0}")]
    Body(String),
    /// Somebody still uses the directory: a worker that was not shut down, or another handle.
    #[error("the directory is still in use: shut the workers down first")]
    InUse,
}

impl Error {
    /// Whether nothing happened and the same call may work later.
    pub fn is_retryable(&self) -> bool {
        self.advice() == RetryAdvice::Retry
    }

    /// Whether it may have happened.
    pub fn is_outcome_unknown(&self) -> bool {
        self.advice() == RetryAdvice::Ask
    }

    /// The stable word for it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Broker(error) => error.code(),
            Self::NotEnqueued(refusal) => refusal.code(),
            Self::Body(_) => "INVALID_ARGUMENT",
            Self::InUse => "IN_USE",
        }
    }

    fn advice(&self) -> RetryAdvice {
        match self {
            Self::Broker(error) => error.advice(),
            Self::NotEnqueued(refusal) => refusal.advice(),
            Self::Body(_) => RetryAdvice::GiveUp,
            Self::InUse => RetryAdvice::Retry,
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Broker(error.into())
    }
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        Self::Broker(invalid.into())
    }
}
