//! Why the broker did not do what it was asked.

use redrive_core::access::KeyId;
use redrive_core::invalid::Invalid;
use redrive_core::queue::QueueName;
use redrive_core::receipt::InvalidReceipt;
use redrive_store::{QueueError, QueueNotFound, RetryAdvice, StoreError};
use thiserror::Error;

use crate::access::Unauthenticated;
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
    /// The queue belongs to the event bus, or its name does.
    #[error(
        "{0} belongs to the event bus: it is created, changed and deleted with its subscription or topic"
    )]
    QueueOfBus(QueueName),
    /// The queue has no breaker.
    #[error("{0} has no breaker")]
    NoBreaker(QueueName),
    /// What was asked for one message was not done.
    #[error("{detail}")]
    NotApplied {
        /// The stable word for why.
        code: &'static str,
        /// The same for a person.
        detail: String,
    },
    /// The caller was not let in.
    #[error(transparent)]
    Unauthenticated(#[from] Unauthenticated),
    /// The caller may not do that.
    #[error("this API key may not {what}{}", named(.on.as_ref()))]
    Forbidden {
        /// What.
        what: &'static str,
        /// To which queue or topic.
        on: Option<String>,
    },
    /// The caller wants to give what it does not hold.
    #[error("{what}: an API key can only give what it holds")]
    NotHeld {
        /// What.
        what: &'static str,
    },
    /// The key has as much of something as it may have.
    #[error("{what}: the quota of this API key is {max}")]
    QuotaReached {
        /// Of what.
        what: &'static str,
        /// How much.
        max: u32,
    },
    /// There are as many API keys as there may be.
    #[error("API keys: the limit is {max}")]
    TooManyKeys {
        /// The limit.
        max: usize,
    },
    /// There is no such API key.
    #[error("there is no API key {0}")]
    KeyNotFound(KeyId),
    /// The API key has come to its end.
    #[error("API key {0} was revoked or has expired")]
    KeyEnded(KeyId),
    /// The id of a new API key is taken.
    #[error("the id of the new API key is taken")]
    KeyIdTaken,
    /// The API key stands in the environment of the server, and is changed there.
    #[error("this API key stands in the environment of the server, and is changed there")]
    KeyOfEnvironment,
    /// The server lets in anyone.
    #[error("this server was started without API keys: start it with a bootstrap key")]
    KeysNotInUse,
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
            | Self::QuotaReached { .. }
            | Self::KeyIdTaken
            | Self::NoChance(_) => RetryAdvice::Retry,
            Self::InvalidReceipt(_)
            | Self::MessageNotFound(_)
            | Self::OperationNotFound(_)
            | Self::OperationEnded(_)
            | Self::KeyReused
            | Self::NotApplied { .. }
            | Self::Unauthenticated(_)
            | Self::Forbidden { .. }
            | Self::NotHeld { .. }
            | Self::TooManyKeys { .. }
            | Self::KeyNotFound(_)
            | Self::KeyEnded(_)
            | Self::KeyOfEnvironment
            | Self::KeysNotInUse
            | Self::QueueOfBus(_)
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
            Self::QueueOfBus(_) => "QUEUE_OF_BUS",
            Self::NoBreaker(_) => "NO_BREAKER",
            Self::NotApplied { code, .. } => code,
            Self::Unauthenticated(refused) => refused.code(),
            Self::Forbidden { .. } => "FORBIDDEN",
            Self::NotHeld { .. } => "NOT_HELD",
            Self::QuotaReached { .. } => "QUOTA_REACHED",
            Self::TooManyKeys { .. } => "TOO_MANY_KEYS",
            Self::KeyNotFound(_) => "KEY_NOT_FOUND",
            Self::KeyEnded(_) => "KEY_ENDED",
            Self::KeyIdTaken | Self::NoChance(_) => "UNAVAILABLE",
            Self::KeyOfEnvironment => "KEY_OF_ENVIRONMENT",
            Self::KeysNotInUse => "KEYS_NOT_IN_USE",
        }
    }
}

/// Where, if it is known.
fn named(name: Option<&String>) -> String {
    name.map(|name| format!(" {name}")).unwrap_or_default()
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
