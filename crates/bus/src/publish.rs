//! publish: an event comes in, and is with all who want it before anybody is told so.
//!
//! The messages of one event, one for each subscription, are enqueued in one step, all or none. Several events go together as
//! long as nothing is refused. What one step cannot do, the relay does: its message is enqueued in the place of the others.

use std::sync::Arc;

use redrive_broker::{BrokerError, NewMessage, TraceParent};
use redrive_core::invalid::Invalid;
use redrive_core::limits::{BATCH_BYTES_MAX, BATCH_ITEMS_MAX, FAN_OUT_MAX};
use redrive_core::message::{MessageId, MessageType, Source, Spec};
use redrive_core::queue::QueueName;
use redrive_core::subscription::{SubscriptionId, is_reserved, relay_queue};
use redrive_core::topic::Topic;
use redrive_store::{EnqueueOutcome, EnqueueRefusal, Filter, Limit, ListRequest};

use crate::bus::Bus;
use crate::dispatch::merged_policy;
use crate::error::BusError;
use crate::event::{self, NewEvent, ORDER_HEADER, TYPE_HEADER};
use crate::relay::Errand;
use crate::subscription::Subscription;
use crate::topic::{Dispatch, TopicSettings};
use crate::view::Matching;

/// How often the messages of an event are put together again, because a queue of theirs was not as it was known.
const TRIES_MAX: usize = 8;

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// Its id; that of the first one, where it was published before.
    pub id: MessageId,
    /// How many subscriptions it goes to.
    pub subscriptions: usize,
    /// Whether all of them had it already.
    pub duplicate: bool,
}

/// The messages that an event becomes.
struct Plan {
    id: MessageId,
    subscriptions: usize,
    messages: Vec<NewMessage>,
}

impl Plan {
    fn size(&self) -> usize {
        let one =
            |message: &NewMessage| message.draft.spec.body.bytes().len() + message.draft.spec.headers.size();
        self.messages.iter().map(one).sum()
    }

    fn published(&self, outcomes: &[EnqueueOutcome]) -> Published {
        // An id of its own is that of a try whose answer was lost.
        let before = |outcome: &EnqueueOutcome| match outcome {
            EnqueueOutcome::Duplicate { id } => Some(*id).filter(|id| *id != self.id),
            _ => None,
        };
        let first = outcomes.first().and_then(before);
        let first = first.filter(|_| outcomes.iter().all(|outcome| before(outcome).is_some()));
        Published {
            id: first.unwrap_or(self.id),
            subscriptions: self.subscriptions,
            duplicate: first.is_some(),
        }
    }
}

impl Bus {
    /// Publishes events on a topic. Each is durable for all of its subscriptions, or for none, when this returns.
    pub async fn publish(
        &self,
        topic: &Topic,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Result<Published, BusError>>, BusError> {
        Invalid::check_length("events", events.len(), BATCH_ITEMS_MAX, "items")?;
        events.iter().try_for_each(NewEvent::check)?;
        self.keep_up().await?;
        let ids = self.broker.event_ids(events.len())?;
        let events: Vec<(MessageId, NewEvent)> = ids.into_iter().zip(events).collect();
        let kept = self.view().topic(topic).filter(|settings| settings.config.retain.is_some()).cloned();
        if let Some(settings) = kept {
            // Before it is looked who is there: whoever comes later and asks for the past finds these events in it.
            self.retain(&settings, topic, &events).await?;
            self.keep_up().await?;
        }
        let (matching, settings, order) = {
            let view = self.view();
            (view.matching(topic), view.topic(topic).cloned(), view.revision().number)
        };
        let plan = |(id, event): (MessageId, NewEvent)| {
            self.plan(topic, id, &event, &matching, settings.as_ref(), order)
        };
        let plans = events.into_iter().map(plan).collect::<Result<Vec<Plan>, Invalid>>()?;
        let outcomes = self.enqueue_plans(plans).await;
        self.metrics.published(&outcomes);
        Ok(outcomes)
    }

    /// How many subscriptions would want an event on that topic, as far as its headers let them.
    pub fn reaches(&self, topic: &Topic) -> usize {
        self.view().matching(topic).len()
    }

    fn plan(
        &self,
        topic: &Topic,
        id: MessageId,
        event: &NewEvent,
        matching: &Matching,
        settings: Option<&TopicSettings>,
        order: u64,
    ) -> Result<Plan, Invalid> {
        let wanted = || matching.iter().filter(|one| one.settings.filter.passes(&event.headers));
        let subscriptions = wanted().count();
        let spec = event.spec(topic, id)?;
        let messages = match settings {
            _ if subscriptions == 0 => Vec::new(),
            Some(settings) if settings.config.dispatch == Dispatch::Sequential => {
                let mut spec = spec;
                spec.headers.set(ORDER_HEADER, order.to_string())?;
                spec.max_attempts = merged_policy(wanted().map(Arc::as_ref)).max_attempts;
                vec![event::message(settings.sequence_queue(), spec, event.request)]
            }
            _ if self.needs_relay(subscriptions, &spec) => {
                let spec = Errand::FanOut { order }.wrap(spec)?;
                vec![event::message(relay_queue(), spec, event.request)]
            }
            _ => fan_out(wanted().map(Arc::as_ref), &spec, event.request),
        };
        Ok(Plan { id, subscriptions, messages })
    }

    /// Whether one step is not enough.
    fn needs_relay(&self, subscriptions: usize, spec: &Spec) -> bool {
        let size = (spec.body.bytes().len() + spec.headers.size()).saturating_mul(subscriptions);
        let atomic = self.broker.store().capabilities().atomic_across_queues;
        subscriptions > FAN_OUT_MAX || size > BATCH_BYTES_MAX || (subscriptions > 1 && !atomic)
    }

    async fn enqueue_plans(&self, plans: Vec<Plan>) -> Vec<Result<Published, BusError>> {
        let mut published = Vec::with_capacity(plans.len());
        for chunk in chunks(plans) {
            if let [_] = chunk.as_slice() {
                for plan in chunk {
                    published.push(self.enqueue_plan(plan).await);
                }
                continue;
            }
            let messages = chunk.iter().flat_map(|plan| plan.messages.iter().cloned()).collect();
            let outcomes = self.enqueue(messages).await.unwrap_or_default();
            if outcomes.is_empty() || outcomes.iter().any(was_not_enqueued) {
                // One of them stood in the way of all, or the store did: each goes by itself, and has its own answer.
                for plan in chunk {
                    published.push(self.enqueue_plan(plan).await);
                }
                continue;
            }
            let mut outcomes = outcomes.as_slice();
            for plan in chunk {
                let (own, rest) = outcomes.split_at(plan.messages.len().min(outcomes.len()));
                outcomes = rest;
                published.push(Ok(plan.published(own)));
            }
        }
        published
    }

    async fn enqueue(&self, messages: Vec<NewMessage>) -> Result<Vec<EnqueueOutcome>, BusError> {
        let outcomes = self.broker.enqueue_existing(messages, true).await?;
        Ok(outcomes.into_iter().collect::<Result<Vec<_>, BrokerError>>()?)
    }

    /// Enqueues the messages of one event. What a queue refuses is mended, and all are tried again.
    async fn enqueue_plan(&self, mut plan: Plan) -> Result<Published, BusError> {
        for _ in 0..TRIES_MAX {
            if plan.messages.is_empty() {
                return Ok(plan.published(&[EnqueueOutcome::Aborted]));
            }
            let outcomes = self.enqueue(plan.messages.clone()).await?;
            if !outcomes.iter().any(was_not_enqueued) {
                return Ok(plan.published(&outcomes));
            }
            for (at, outcome) in outcomes.into_iter().enumerate().rev() {
                if let EnqueueOutcome::Refused(refusal) = outcome {
                    self.mend(&mut plan, at, refusal).await?;
                }
            }
        }
        Err(BusError::Busy)
    }

    /// Does something about a message that was refused.
    async fn mend(&self, plan: &mut Plan, at: usize, refusal: EnqueueRefusal) -> Result<(), BusError> {
        let Some(message) = plan.messages.get_mut(at) else { return Ok(()) };
        match &refusal {
            EnqueueRefusal::TooManyClasses { .. } => self.squeeze(message).await,
            EnqueueRefusal::QueueNotFound(missing) if is_reserved(&missing.0) => {
                if !self.mend_queue(&missing.0).await? {
                    plan.messages.remove(at);
                    plan.subscriptions = plan.subscriptions.saturating_sub(1);
                }
                Ok(())
            }
            // The queue of somebody else stands in nobody's way: the relay tries again until it can.
            EnqueueRefusal::QueueNotFound(_) | EnqueueRefusal::QueueFull { .. }
                if !is_reserved(&message.queue) =>
            {
                let queue = message.queue.as_str().to_owned();
                message.draft.spec = Errand::To { queue }.wrap(message.draft.spec.clone())?;
                // Several such errands of one event are different messages.
                let id = self.broker.event_ids(1)?.pop().unwrap_or(plan.id);
                message.draft.spec.id = id;
                message.id = Some(id);
                message.queue = relay_queue();
                Ok(())
            }
            _ => Err(BusError::Refused { queue: message.queue.as_str().to_owned(), refusal }),
        }
    }

    /// Takes an event into a queue that can tell no more types apart: first as one of no type, then as one of a type that is
    /// there. What it really is, is in its headers; only who asks a queue for a type is told less.
    pub(crate) async fn squeeze(&self, message: &mut NewMessage) -> Result<(), BusError> {
        let spec = &mut message.draft.spec;
        if spec.headers.get(TYPE_HEADER).is_none() {
            spec.headers.set(TYPE_HEADER, spec.kind.as_str().to_owned())?;
            (spec.kind, spec.source) = (MessageType::default(), Source::default());
            return Ok(());
        }
        let first =
            ListRequest { limit: Limit::ONE, ..ListRequest::new(message.queue.clone(), Filter::default()) };
        if let Some(there) = self.broker.list(first).await?.messages.into_iter().next() {
            (spec.kind, spec.source) = (there.spec.kind, there.spec.source);
        }
        Ok(())
    }

    /// Makes a queue of the bus that is missing; says whether it is still needed.
    pub(crate) async fn mend_queue(&self, queue: &QueueName) -> Result<bool, BusError> {
        if *queue == relay_queue() {
            self.ensure_relay().await?;
            return Ok(true);
        }
        self.refresh().await?;
        if let Some(id) = SubscriptionId::of_queue(queue).and_then(|id| SubscriptionId::new(id).ok()) {
            let known = self.view().subscription(&id);
            return match known {
                Some(subscription) => self.ensure_queue(&subscription).await.map(|()| true),
                None => Ok(false),
            };
        }
        let known = self.view().topics().find(|settings| settings.sequence_queue() == *queue).cloned();
        match known {
            Some(settings) => self.ensure_sequence(&settings).await.map(|()| true),
            None => Ok(false),
        }
    }
}

/// One message for each subscription.
pub(crate) fn fan_out<'a>(
    wanted: impl Iterator<Item = &'a Subscription>,
    spec: &Spec,
    request: Option<TraceParent>,
) -> Vec<NewMessage> {
    let one = |subscription: &Subscription| event::message(subscription.queue(), spec.clone(), request);
    let mut messages: Vec<NewMessage> = wanted.map(one).collect();
    // Two subscriptions may go to one queue, which takes the event once.
    if messages.len() > 1 && has_plain(&messages) {
        messages.sort_by(|one, other| one.queue.cmp(&other.queue));
        messages.dedup_by(|one, other| one.queue == other.queue);
    }
    messages
}

fn has_plain(messages: &[NewMessage]) -> bool {
    messages.iter().any(|message| !is_reserved(&message.queue))
}

fn was_not_enqueued(outcome: &EnqueueOutcome) -> bool {
    matches!(outcome, EnqueueOutcome::Refused(_) | EnqueueOutcome::Aborted)
}

/// Plans in groups that each fit into one step.
fn chunks(plans: Vec<Plan>) -> Vec<Vec<Plan>> {
    let mut chunks: Vec<Vec<Plan>> = Vec::new();
    let (mut items, mut bytes) = (0, 0);
    for plan in plans {
        let (more, size) = (plan.messages.len(), plan.size());
        if chunks.is_empty() || items + more > BATCH_ITEMS_MAX || bytes + size > BATCH_BYTES_MAX {
            chunks.push(Vec::new());
            (items, bytes) = (0, 0);
        }
        (items, bytes) = (items + more, bytes + size);
        if let Some(chunk) = chunks.last_mut() {
            chunk.push(plan);
        }
    }
    chunks
}
