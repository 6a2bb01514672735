//! Why something was not done.

use redrive_broker::BrokerError;
use redrive_bus::BusError;
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
    /// The event bus said no.
    #[error(transparent)]
    Bus(BusError),
    /// A subscription was given no name, and the one that follows from its pattern is that of another.
    #[error(
        "a subscription to {pattern} would be called {name}, and another one is already: \
         give it a name of its own with `.name(…)`"
    )]
    NameTaken {
        /// The name.
        name: String,
        /// The pattern from which it follows.
        pattern: String,
    },
    /// A handler of that name is at work in this program.
    #[error("a handler for {0} is at work already: stop that one first, or give this one another name")]
    AlreadyHandled(String),
    /// There is a subscription of that name that goes elsewhere.
    #[error(
        "{name} is a subscription with another target, of the kind {target}: end that one first, or use another name"
    )]
    OtherTarget {
        /// The name.
        name: String,
        /// What kind of target it has.
        target: &'static str,
    },
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
            Self::Bus(error) => error.code(),
            Self::Body(_) => "INVALID_ARGUMENT",
            Self::NameTaken { .. } | Self::AlreadyHandled(_) | Self::OtherTarget { .. } => {
                "SUBSCRIPTION_EXISTS"
            }
            Self::InUse => "IN_USE",
        }
    }

    fn advice(&self) -> RetryAdvice {
        match self {
            Self::Broker(error) => error.advice(),
            Self::NotEnqueued(refusal) => refusal.advice(),
            Self::Bus(error) => error.advice(),
            Self::Body(_) | Self::NameTaken { .. } | Self::AlreadyHandled(_) | Self::OtherTarget { .. } => {
                RetryAdvice::GiveUp
            }
            Self::InUse => RetryAdvice::Retry,
        }
    }
}

impl From<BusError> for Error {
    fn from(error: BusError) -> Self {
        match error {
            BusError::Broker(error) => Self::Broker(error),
            error => Self::Bus(error),
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
