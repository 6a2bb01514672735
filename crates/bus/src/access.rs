//! The gate of the bus: whoever may do something with a topic or a subscription is handed the bus, and nobody else.
//!
//! Rights on a subscription are those on its queue, `bus.sub.` and its name; rights on topics are those on queues of the same
//! names. Who subscribes sees the events, so it takes the right to read those topics as well, and who has them put into a
//! queue the right to put something there.

use std::sync::Arc;

use redrive_broker::{Broker, BrokerError, Caller, SubscriptionFacts};
use redrive_core::access::{Deed, On, Right, Use};
use redrive_core::message::{MessageId, Note};
use redrive_core::subscription::SubscriptionId;
use redrive_core::topic::{Topic, TopicPattern};
use redrive_store::Limit;

use crate::bus::Bus;
use crate::error::BusError;
use crate::event::NewEvent;
use crate::manage::{Created, NewSubscription, NewTarget, SubscriptionChange};
use crate::publish::Published;
use crate::resend::Resent;
use crate::subscription::{Subscription, Target};
use crate::topic::{TopicConfig, TopicSettings};

/// Where APIs ask for the bus.
#[derive(Debug, Clone)]
pub struct BusGate(Bus);

impl BusGate {
    /// A gate before a bus.
    pub const fn new(bus: Bus) -> Self {
        Self(bus)
    }

    /// The bus, for who may do that; who may not is noted by the caller's own gate.
    pub fn may<'a>(
        &self,
        caller: &Caller,
        right: impl Right,
        on: impl Into<On<'a>>,
    ) -> Result<&Bus, BrokerError> {
        caller.may(right, on)?;
        Ok(&self.0)
    }

    /// Does what an operator does, if the caller may, and writes it down with what came of it.
    pub async fn act<'a, T>(
        &self,
        caller: &Caller,
        deed: Deed,
        on: impl Into<On<'a>>,
        work: impl AsyncFnOnce(Bus) -> Result<T, BusError>,
    ) -> Result<T, BusError> {
        caller.act(deed, on, async |_: Broker| work(self.0.clone()).await).await
    }

    /// The same to a subscription.
    pub async fn act_on<T>(
        &self,
        caller: &Caller,
        deed: Deed,
        id: &SubscriptionId,
        work: impl AsyncFnOnce(Bus) -> Result<T, BusError>,
    ) -> Result<T, BusError> {
        self.act(caller, deed, &id.queue(), work).await
    }

    /// Publishes, where the caller may.
    pub async fn publish(
        &self,
        caller: &Caller,
        topic: &Topic,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Result<Published, BusError>>, BusError> {
        self.may(caller, Use::Publish, topic)?.publish(topic, events).await
    }

    /// Sets how events of some topics are dispatched and kept.
    pub async fn set_topic(
        &self,
        caller: &Caller,
        config: TopicConfig,
        expected: Option<u64>,
    ) -> Result<TopicSettings, BusError> {
        let pattern = config.pattern.clone();
        self.act(caller, Deed::SetTopic, &pattern, async |bus| bus.set_topic(config, expected).await).await
    }

    /// A page of what is set for topics that the caller may see, and where the next page begins.
    pub async fn topics(
        &self,
        caller: &Caller,
        after: Option<&TopicPattern>,
        limit: Limit,
    ) -> Result<(Vec<TopicSettings>, Option<TopicPattern>), BusError> {
        let mut topics = self.may(caller, Use::Look, On::Some)?.topics().await?;
        topics.retain(|settings| {
            let pattern = &settings.config.pattern;
            after.is_none_or(|after| pattern > after) && caller.sees(Use::Look, pattern)
        });
        let more = topics.len() > limit.get();
        topics.truncate(limit.get());
        let next = topics.last().filter(|_| more).map(|last| last.config.pattern.clone());
        Ok((topics, next))
    }

    /// What is set for a pattern.
    pub async fn topic(&self, caller: &Caller, pattern: &TopicPattern) -> Result<TopicSettings, BusError> {
        self.may(caller, Use::Look, pattern)?.topic(pattern).await
    }

    /// Creates a subscription.
    pub async fn create_subscription(
        &self,
        caller: &Caller,
        mut new: NewSubscription,
    ) -> Result<Created, BusError> {
        let id = match new.id.take() {
            Some(id) => id,
            None => self.0.new_id()?,
        };
        new.id = Some(id.clone());
        self.act_on(caller, Deed::CreateSubscription, &id, async |bus| {
            caller.may(Use::Subscribe, &new.settings.pattern)?;
            if let NewTarget::Queue(queue) = &new.target {
                caller.may(Use::Enqueue, queue)?;
            }
            bus.create_subscription(new).await
        })
        .await
    }

    /// Changes what is set of a subscription.
    pub async fn update_subscription(
        &self,
        caller: &Caller,
        id: &SubscriptionId,
        change: SubscriptionChange,
    ) -> Result<Arc<Subscription>, BusError> {
        self.act_on(caller, Deed::UpdateSubscription, id, async |bus| {
            caller.may(Use::Subscribe, &change.settings.pattern)?;
            if let Target::Queue(queue) = &bus.subscription(id).await?.target {
                caller.may(Use::Enqueue, queue)?;
            }
            bus.update_subscription(id, change).await
        })
        .await
    }

    /// Brings an event to a subscription once more. Where that means a queue of somebody else, it takes the same right there.
    pub async fn resend(
        &self,
        caller: &Caller,
        id: &SubscriptionId,
        event: MessageId,
    ) -> Result<Resent, BusError> {
        let by = Note::new(caller.key().map(|key| key.name.as_str().to_owned()).unwrap_or_default())?;
        self.act_on(caller, Deed::Resend, id, async |bus| {
            if let Target::Queue(queue) = &bus.subscription(id).await?.target {
                caller.may(Deed::Resend, queue)?;
            }
            bus.resend(id, event, by).await
        })
        .await
    }

    /// A subscription that the caller may see.
    pub async fn subscription(
        &self,
        caller: &Caller,
        id: &SubscriptionId,
    ) -> Result<Arc<Subscription>, BusError> {
        self.may(caller, Use::Look, &id.queue())?.subscription(id).await
    }

    /// The subscriptions that fail or are switched off, of those that the caller may see.
    pub async fn troubled(&self, caller: &Caller) -> Result<Vec<SubscriptionFacts>, BusError> {
        let bus = self.may(caller, Use::Look, On::Some)?;
        bus.troubled(|id| caller.sees(Use::Look, &id.queue())).await
    }

    /// A page of the subscriptions that the caller may see, and where the next page begins.
    pub async fn subscriptions(
        &self,
        caller: &Caller,
        mut after: Option<SubscriptionId>,
        limit: Limit,
    ) -> Result<(Vec<Arc<Subscription>>, Option<SubscriptionId>), BusError> {
        let bus = self.may(caller, Use::Look, On::Some)?;
        let mut seen = Vec::new();
        loop {
            let page = bus.subscriptions(after.as_ref(), Limit::MAX).await?;
            let last = page.len() < Limit::MAX.get();
            for subscription in page {
                after = Some(subscription.id.clone());
                if caller.sees(Use::Look, &subscription.id.queue()) {
                    seen.push(subscription);
                }
                if seen.len() == limit.get() {
                    return Ok((seen, after));
                }
            }
            if last {
                return Ok((seen, None));
            }
        }
    }
}
