//! Why the bus did not do what it was asked.

use redrive_broker::{BrokerError, Fault};
use redrive_core::invalid::Invalid;
use redrive_core::message::MessageId;
use redrive_core::subscription::SubscriptionId;
use redrive_core::topic::TopicPattern;
use redrive_store::{EnqueueRefusal, QueueError, RetryAdvice, StoreError};
use thiserror::Error;

use crate::webhook::Unusable;

/// Why the bus did not do what it was asked. Nothing happened, unless the store says that it does not know.
#[derive(Debug, Error)]
pub enum BusError {
    /// The broker said no.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// There is no such subscription.
    #[error("there is no subscription {0}")]
    SubscriptionNotFound(SubscriptionId),
    /// There is one of that name.
    #[error("there is a subscription {0} already")]
    SubscriptionExists(SubscriptionId),
    /// Nothing is set for that pattern.
    #[error("nothing is set for the topics {0}")]
    TopicNotFound(TopicPattern),
    /// Events wait that would be lost.
    #[error("{waiting} events of {pattern} wait for their handlers: let them, or use force")]
    TopicNotEmpty {
        /// Of which topics.
        pattern: TopicPattern,
        /// How many.
        waiting: u64,
    },
    /// It was changed since the caller saw it.
    #[error("it is at version {actual} by now")]
    VersionMismatch {
        /// The version it has.
        actual: u64,
    },
    /// There are as many as there may be.
    #[error("{what}: the limit is {max}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        max: usize,
    },
    /// That cannot be done with a target of that kind.
    #[error("{what}: not with a target of the kind {kind}")]
    WrongTarget {
        /// What was asked.
        what: &'static str,
        /// The kind of the target.
        kind: &'static str,
    },
    /// An event could not be enqueued where it belongs.
    #[error("the event was refused by {queue}: {refusal}")]
    Refused {
        /// Where.
        queue: String,
        /// Why.
        refusal: EnqueueRefusal,
    },
    /// There is no such replay.
    #[error("there is no replay {0} under way")]
    ReplayNotFound(MessageId),
    /// There is no such event for that subscription, and none was kept.
    #[error(
        "the event {event} is neither dead nor waiting for {subscription}, and no topic of its pattern has retained it"
    )]
    EventNotFound {
        /// Which event.
        event: MessageId,
        /// For whom.
        subscription: SubscriptionId,
    },
    /// Webhooks cannot be sent as they are set.
    #[error(transparent)]
    Webhooks(#[from] Unusable),
    /// Others change the same all the time.
    #[error("others change topics and subscriptions all the time; try again")]
    Busy,
}

impl BusError {
    /// Whether a retry helps.
    pub fn advice(&self) -> RetryAdvice {
        match self {
            Self::Broker(error) => error.advice(),
            Self::Refused { refusal, .. } => refusal.advice(),
            Self::Busy => RetryAdvice::Retry,
            _ => RetryAdvice::GiveUp,
        }
    }

    /// The stable word for it in APIs, metrics and logs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Broker(error) => error.code(),
            Self::SubscriptionNotFound(_) => "SUBSCRIPTION_NOT_FOUND",
            Self::SubscriptionExists(_) => "SUBSCRIPTION_EXISTS",
            Self::TopicNotFound(_) => "TOPIC_NOT_FOUND",
            Self::TopicNotEmpty { .. } => "TOPIC_NOT_EMPTY",
            Self::VersionMismatch { .. } => "VERSION_MISMATCH",
            Self::TooMany { .. } => "TOO_MANY_SUBSCRIPTIONS",
            Self::WrongTarget { .. } => "WRONG_TARGET",
            Self::Refused { refusal, .. } => refusal.code(),
            Self::ReplayNotFound(_) => "REPLAY_NOT_FOUND",
            Self::EventNotFound { .. } => "EVENT_NOT_FOUND",
            Self::Webhooks(_) | Self::Busy => "UNAVAILABLE",
        }
    }
}

impl From<StoreError> for BusError {
    fn from(error: StoreError) -> Self {
        Self::Broker(error.into())
    }
}

impl From<QueueError> for BusError {
    fn from(error: QueueError) -> Self {
        Self::Broker(error.into())
    }
}

impl From<Invalid> for BusError {
    fn from(invalid: Invalid) -> Self {
        Self::Broker(invalid.into())
    }
}

impl From<getrandom::Error> for BusError {
    fn from(error: getrandom::Error) -> Self {
        Self::Broker(error.into())
    }
}

impl Fault for BusError {
    fn code(&self) -> &'static str {
        Self::code(self)
    }
}
