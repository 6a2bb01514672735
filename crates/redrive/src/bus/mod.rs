//! Events: published on topics, and brought to everybody who subscribed to them.
//!
//! [`EventBus`] is the way to the bus of a broker; `slot` is where that bus is. `publish` is an event on its way in,
//! `subscribe` what is said of a subscription, `handler` a function of the program and what it is told of its event, `name`
//! what a subscription is called that was given no name. `topic` is what may be set for topics, `manage` what may be done to
//! subscriptions afterwards.

mod handler;
mod manage;
mod name;
mod publish;
mod slot;
mod subscribe;
mod topic;

use std::sync::{Arc, Weak};

pub use handler::EventContext;
pub use manage::{Breaker, BreakerState, DeadEvent, SubscriptionInfo};
pub use publish::{NewEvent, Published};
pub use subscribe::{
    BreakerSettings, Delivered, ReplayFrom, Subscribe, Subscription, ToHandler, ToQueue, ToWebhook,
    WebhookSubscription,
};
pub use topic::{Topic, TopicBuilder};

pub(crate) use slot::Slot;

use redrive_broker::BrokerError;
use redrive_bus::Bus;
use redrive_client::{FromMessage, IntoOutcome};
use serde::Serialize;

use crate::error::Error;

/// The way to the event bus of a broker. Clones lead to the same.
///
/// It does not keep the broker open: handlers may hold it, to publish what follows from an event. When the broker is
/// closed, everything here says so.
#[derive(Debug, Clone)]
pub struct EventBus(Weak<Slot>);

impl EventBus {
    pub(crate) fn new(slot: &Arc<Slot>) -> Self {
        Self(Arc::downgrade(slot))
    }

    fn slot(&self) -> Result<Arc<Slot>, Error> {
        self.0.upgrade().ok_or_else(|| BrokerError::Stopping.into())
    }

    async fn bus(&self) -> Result<Bus, Error> {
        self.slot()?.bus().await
    }

    /// Publishes something that can be written as JSON. It is durable for everybody who subscribed when this returns.
    pub async fn publish<T: Serialize + ?Sized>(&self, topic: &str, data: &T) -> Result<Published, Error> {
        self.event(topic).json(data)?.publish().await
    }

    /// An event with whatever is to be said of it.
    pub fn event(&self, topic: &str) -> NewEvent {
        NewEvent::new(self.clone(), topic)
    }

    /// What may be set for the topics of a pattern.
    pub fn topic(&self, pattern: &str) -> TopicBuilder {
        TopicBuilder::new(self.clone(), pattern)
    }

    /// Brings the events of some topics to a function of this program: of a body, and an [`EventContext`].
    ///
    /// In a pattern, `*` is one segment of a topic and `**` any number of them. The subscription is durable, and its name is
    /// what ties the function to it: after a restart, what was published before waits for whoever subscribes under the
    /// same name. Events that were published before its first time do not come, unless they are
    /// [replayed](Subscribe::replay_from).
    pub fn subscribe<F, B, Fut>(&self, pattern: &str, function: F) -> Subscribe<ToHandler>
    where
        F: Fn(B, EventContext) -> Fut + Send + Sync + 'static,
        B: FromMessage + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: IntoOutcome,
    {
        Subscribe::new(self.clone(), pattern, ToHandler::new(function))
    }

    /// Brings the events of some topics to an HTTP endpoint, signed.
    pub fn subscribe_webhook(&self, pattern: &str, url: &str) -> Subscribe<ToWebhook> {
        Subscribe::new(self.clone(), pattern, ToWebhook::new(url))
    }

    /// Puts the events of some topics into a queue, for workers to take. The queue's own settings say how they are retried.
    pub fn subscribe_queue(&self, pattern: &str, queue: &str) -> Subscribe<ToQueue> {
        Subscribe::new(self.clone(), pattern, ToQueue::new(queue))
    }
}
