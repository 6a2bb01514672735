//! The relay: what one step cannot do is a message in a queue of the bus's own, and done by whoever leases it.
//!
//! * An event for very many subscriptions is brought to them a batch at a time.
//! * An event for a queue that was full or missing is brought there when it can be.
//! * What a topic retained is replayed to one subscription.
//!
//! How far it came is the message's checkpoint. Whoever goes on after a crash repeats the last batch at most, and messages
//! that are there keep their ids: an errand is done at least once.

use std::sync::Arc;

use redrive_broker::Target as Lease;
use redrive_broker::{Act, Delivery, Extend, LeaseCall, Nack, NewMessage, Settlement, Trigger};
use redrive_core::invalid::Invalid;
use redrive_core::lease::ConsumerName;
use redrive_core::limits::{BATCH_BYTES_MAX, BATCH_ITEMS_MAX};
use redrive_core::message::{
    Body, Checkpoint, Dedup, DedupKey, ErrorText, Headers, Message, MessageId, MessageType, Spec, Uniqueness,
};
use redrive_core::policy::{Asked, RetryOverride};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::subscription::{SubscriptionId, is_reserved, relay_queue};
use redrive_core::time::{Millis, Timestamp};
use redrive_core::topic::Topic;
use redrive_store::{EnqueueOutcome, EnqueueRefusal, Filter, Limit, ListRequest, Selection};
use serde::{Deserialize, Serialize};

use crate::bus::Bus;
use crate::dispatch::Pump;
use crate::error::BusError;
use crate::event::{self, NewEvent, TOPIC_HEADER};
use crate::publish::fan_out;
use crate::subscription::{State, Subscription};
use crate::topic::TopicSettings;

/// The header that says what is to be done.
const ERRAND_HEADER: &str = "redrive-errand";
/// How long an errand is leased; each batch renews it.
const LEASE: Millis = Millis::from_secs(60);
/// How many errands are under way at a time, at one instance.
pub(crate) const ERRANDS_MAX: usize = 8;

/// Something that the relay does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Errand {
    /// The event goes to every subscription that matches and was there before it.
    FanOut {
        /// The last subscription that was.
        order: u64,
    },
    /// The event goes to that queue.
    To {
        /// Its name.
        queue: String,
    },
    /// What topics retained since that time goes to that subscription.
    Replay {
        /// To whom.
        subscription: String,
        /// Since when.
        from: Timestamp,
    },
}

impl Errand {
    fn encode(&self) -> String {
        match self {
            Self::FanOut { order } => format!("fan_out {order}"),
            Self::To { queue } => format!("to {queue}"),
            Self::Replay { subscription, from } => format!("replay {} {subscription}", from.as_millis()),
        }
    }

    fn decode(text: &str) -> Option<Self> {
        let (verb, rest) = text.split_once(' ')?;
        match verb {
            "fan_out" => Some(Self::FanOut { order: rest.parse().ok()? }),
            "to" => Some(Self::To { queue: rest.to_owned() }),
            "replay" => {
                let (from, subscription) = rest.split_once(' ')?;
                let from = Timestamp::from_millis(from.parse().ok()?);
                Some(Self::Replay { subscription: subscription.to_owned(), from })
            }
            _ => None,
        }
    }

    /// The message of an event that goes this way.
    pub(crate) fn wrap(&self, mut spec: Spec) -> Result<Spec, Invalid> {
        spec.headers.set(ERRAND_HEADER, self.encode())?;
        Ok(spec)
    }

    /// What a message of the relay's queue asks for.
    fn of(message: &Message) -> Option<Self> {
        Self::decode(message.spec.headers.get(ERRAND_HEADER)?)
    }
}

/// The message of the event without the errand. It is brought to a queue once, as long as the queue remembers.
fn unwrap(message: &Message) -> Result<Spec, Invalid> {
    let spec = &message.spec;
    let own = spec.headers.iter().filter(|(name, _)| *name != ERRAND_HEADER);
    let headers = Headers::new(own.map(|(name, value)| (name.to_owned(), value.to_owned())))?;
    let relayed =
        || Some(Dedup { key: DedupKey::new(spec.id.to_string()).ok()?, unique: Uniqueness::Window });
    Ok(Spec { headers, dedup: spec.dedup.clone().or_else(relayed), ..spec.clone() })
}

/// How far a replay came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayProgress {
    /// Its name.
    pub id: MessageId,
    /// Since when events are brought.
    pub from: Timestamp,
    /// When it was asked for.
    pub started_at: Timestamp,
    /// How many events were brought.
    pub replayed: u64,
}

/// How far a replay came, as it is kept with its message.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct ReplayPoint {
    /// The pattern whose log is read.
    topic: u64,
    /// The last record of it that was read.
    after: u64,
    /// How many events were brought.
    replayed: u64,
}

/// The relay's queue gives up nothing: what it brings must arrive, or be seen waiting.
fn relay_config() -> QueueConfig {
    QueueConfig {
        lease_timeout: Some(LEASE),
        retry: RetryOverride {
            max_attempts: Some(None),
            max_delay: Some(Some(Millis::from_secs(60))),
            ..RetryOverride::default()
        },
        ..QueueConfig::default()
    }
}

impl Bus {
    /// Makes sure that the relay has a queue.
    pub(crate) async fn ensure_relay(&self) -> Result<(), BusError> {
        let found = self.broker.store().get_queue(&relay_queue()).await?;
        self.ensure(relay_queue(), found, relay_config()).await?;
        self.sync_pump(Pump::Relay);
        Ok(())
    }

    /// Brings what the topics of a subscription retained since then to it once more. It goes on in the background; answers
    /// its name.
    pub async fn replay(&self, id: &SubscriptionId, from: Timestamp) -> Result<MessageId, BusError> {
        let subscription = self.subscription(id).await?;
        let errand = Errand::Replay { subscription: subscription.id.as_str().to_owned(), from };
        let replay = self.broker.event_ids(1)?.pop().unwrap_or(MessageId::MIN);
        let body = NewEvent { body: Body::default(), ..NewEvent::default() };
        let mut spec = errand.wrap(body.spec(&Topic::new("replay")?, replay)?)?;
        spec.kind = MessageType::new("replay")?;
        self.ensure_relay().await?;
        let message = event::message(relay_queue(), spec, None);
        let outcome = self.broker.enqueue_existing(vec![message], true).await?.pop().transpose()?;
        if let Some(EnqueueOutcome::Refused(refusal)) = outcome {
            return Err(BusError::Refused { queue: relay_queue().as_str().to_owned(), refusal });
        }
        self.broker.tell_subscription(id, Act::Replayed, Trigger::Operator);
        Ok(replay)
    }

    /// Replays to a subscription that are under way.
    pub async fn replays(&self, id: &SubscriptionId) -> Result<Vec<ReplayProgress>, BusError> {
        let kind = MessageType::new("replay")?;
        let filter = Filter { kinds: vec![kind], ..Filter::default() };
        let page = match self.broker.list(ListRequest::new(relay_queue(), filter)).await {
            Ok(page) => page,
            Err(error) if error.code() == "QUEUE_NOT_FOUND" => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let own = page.messages.iter().filter_map(|message| match Errand::of(message)? {
            Errand::Replay { subscription, from } if subscription == id.as_str() => Some(ReplayProgress {
                id: message.id(),
                from,
                started_at: message.created_at,
                replayed: replay_point(message).replayed,
            }),
            _ => None,
        });
        Ok(own.collect())
    }

    /// Ends a replay. What was brought stays.
    pub async fn cancel_replay(&self, id: &SubscriptionId, replay: MessageId) -> Result<(), BusError> {
        if !self.replays(id).await?.iter().any(|one| one.id == replay) {
            return Err(BusError::ReplayNotFound(replay));
        }
        let selection = Selection::new(relay_queue(), Filter::ids([replay]));
        self.broker.store().discard(self.at(), selection, true).await?;
        Ok(())
    }

    /// Does one errand, and settles it.
    pub(crate) async fn run_errand(&self, delivery: Delivery) {
        let Delivery { message, receipt } = delivery;
        let done = match Errand::of(&message) {
            Some(Errand::FanOut { order }) => self.fan_out_late(&message, &receipt, order).await,
            Some(Errand::To { queue }) => self.bring_to(&message, &queue).await,
            Some(Errand::Replay { subscription, from }) => {
                self.run_replay(&message, &receipt, &subscription, from).await
            }
            None => {
                tracing::error!(message = %message.id(), "the relay was asked for what it does not know");
                Ok(())
            }
        };
        let settled = match done {
            Ok(()) => self.broker.ack(vec![receipt]).await.map(drop),
            Err(error) => {
                let error = ErrorText::new(error.to_string());
                let nack = Nack { receipt, asked: Asked::Nothing, error, checkpoint: None };
                self.broker.nack(vec![nack]).await.map(drop)
            }
        };
        if let Err(error) = settled {
            tracing::warn!(%error, "an errand of the relay is settled by time");
        }
    }

    /// Renews the lease of an errand, and writes down how far it came. Who lost it stops.
    async fn go_on(&self, receipt: &str, checkpoint: String) -> Result<(), BusError> {
        let extend = Extend {
            target: Lease::Receipt(receipt.to_owned()),
            time: Some(LEASE),
            checkpoint: Some(Checkpoint::new(checkpoint)?),
        };
        match self.broker.extend(vec![extend]).await?.pop().and_then(Settlement::applied) {
            Some(_) => Ok(()),
            None => Err(BusError::Busy),
        }
    }

    async fn fan_out_late(&self, message: &Message, receipt: &str, order: u64) -> Result<(), BusError> {
        self.keep_up().await?;
        let done: u64 = checkpoint_text(message).and_then(|text| text.parse().ok()).unwrap_or_default();
        let spec = unwrap(message)?;
        let topic = Topic::new(spec.headers.get(TOPIC_HEADER).unwrap_or_default())?;
        let mut wanted = self.view().matching(&topic);
        wanted.retain(|one| {
            (done + 1..=order).contains(&one.order) && one.settings.filter.passes(&spec.headers)
        });
        let size = (spec.body.bytes().len() + spec.headers.size()).max(1);
        let step = (BATCH_BYTES_MAX / size).clamp(1, BATCH_ITEMS_MAX);
        for part in wanted.chunks(step) {
            let messages = fan_out(part.iter().map(Arc::as_ref), &spec, None);
            self.bring(messages).await?;
            if let Some(last) = part.last() {
                self.go_on(receipt, last.order.to_string()).await?;
            }
        }
        Ok(())
    }

    async fn bring_to(&self, message: &Message, queue: &str) -> Result<(), BusError> {
        let queue = QueueName::new(queue)?;
        // Where nobody wants it there any more, it is not brought.
        self.keep_up().await?;
        let wanted = self.view().after(None).any(|one| one.queue() == queue);
        if !wanted {
            return Ok(());
        }
        self.bring(vec![event::message(queue, unwrap(message)?, None)]).await
    }

    /// Enqueues messages, each by itself. A queue of the bus that is missing is made; any other that refuses fails the errand,
    /// which is done again: what is there already keeps its id.
    pub(crate) async fn bring(&self, messages: Vec<NewMessage>) -> Result<(), BusError> {
        let outcomes = self.broker.enqueue_existing(messages.clone(), false).await?;
        let mut failed = None;
        for (message, outcome) in messages.into_iter().zip(outcomes) {
            let EnqueueOutcome::Refused(refusal) = outcome? else { continue };
            let again = match &refusal {
                EnqueueRefusal::QueueNotFound(missing) if is_reserved(&missing.0) => {
                    if !self.mend_queue(&missing.0).await? {
                        continue;
                    }
                    Some(message.clone())
                }
                EnqueueRefusal::TooManyClasses { .. } => {
                    let mut plain = message.clone();
                    self.squeeze(&mut plain).await?;
                    Some(plain)
                }
                _ => None,
            };
            let outcome = match again {
                Some(again) => self.broker.enqueue_existing(vec![again], false).await?.pop().transpose()?,
                None => Some(EnqueueOutcome::Refused(refusal)),
            };
            if let Some(EnqueueOutcome::Refused(refusal)) = outcome {
                failed = Some(BusError::Refused { queue: message.queue.as_str().to_owned(), refusal });
            }
        }
        failed.map_or(Ok(()), Err)
    }

    async fn run_replay(
        &self,
        message: &Message,
        receipt: &str,
        subscription: &str,
        from: Timestamp,
    ) -> Result<(), BusError> {
        self.keep_up().await?;
        let known = self.view().subscription(&SubscriptionId::new(subscription)?);
        // Whoever was deleted or switched off meanwhile wants nothing.
        let Some(subscription) = known.filter(|one| !matches!(one.state, State::Disabled { .. })) else {
            return Ok(());
        };
        let mut point = replay_point(message);
        let topics: Vec<TopicSettings> = self.view().topics().cloned().collect();
        let begun = point.topic;
        for settings in topics.iter().filter(|settings| settings.number >= begun) {
            if settings.number > point.topic {
                let after = self.retained_since(settings, from).await?;
                point = ReplayPoint { topic: settings.number, after, ..point };
            }
            self.replay_topic(settings, &subscription, &mut point, (receipt, message.created_at)).await?;
        }
        Ok(())
    }

    /// Replays what one pattern retained, until the moment in which the replay was asked for: later events come by themselves.
    async fn replay_topic(
        &self,
        settings: &TopicSettings,
        subscription: &Subscription,
        point: &mut ReplayPoint,
        (receipt, until): (&str, Timestamp),
    ) -> Result<(), BusError> {
        loop {
            let (events, end) = self.retained(settings, point.after).await?;
            let over = end || events.last().is_none_or(|last| last.at > until);
            let mut messages = Vec::new();
            for kept in events.iter().filter(|kept| kept.at <= until) {
                point.after = kept.sequence;
                if subscription.wants(kept) {
                    messages.push(event::message(subscription.queue(), kept.spec()?, None));
                }
            }
            let count = messages.len() as u64;
            for part in batches(messages) {
                self.bring(part).await?;
            }
            point.replayed += count;
            let checkpoint = serde_json::to_string(&*point).expect("numbers are JSON");
            self.go_on(receipt, checkpoint).await?;
            if over {
                return Ok(());
            }
        }
    }
}

/// How the relay asks for its next errand.
pub(crate) fn errand_call(consumer: ConsumerName) -> LeaseCall {
    LeaseCall { time: Some(LEASE), ..LeaseCall::new(relay_queue(), Limit::ONE, consumer) }
}

/// Messages in groups that each fit into one call.
fn batches(messages: Vec<NewMessage>) -> Vec<Vec<NewMessage>> {
    let mut batches: Vec<Vec<NewMessage>> = Vec::new();
    let mut bytes = usize::MAX;
    for message in messages {
        let size = message.draft.spec.body.bytes().len() + message.draft.spec.headers.size();
        if bytes.saturating_add(size) > BATCH_BYTES_MAX {
            batches.push(Vec::new());
            bytes = 0;
        }
        bytes += size;
        if let Some(batch) = batches.last_mut() {
            batch.push(message);
        }
    }
    batches
}

fn checkpoint_text(message: &Message) -> Option<&str> {
    std::str::from_utf8(message.history.checkpoint.as_ref()?.bytes()).ok()
}

fn replay_point(message: &Message) -> ReplayPoint {
    checkpoint_text(message).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errands_are_read_as_they_were_written() {
        for errand in [
            Errand::FanOut { order: 7 },
            Errand::To { queue: "orders".to_owned() },
            Errand::Replay { subscription: "mail".to_owned(), from: Timestamp::from_millis(9) },
        ] {
            assert_eq!(Errand::decode(&errand.encode()), Some(errand));
        }
        for wrong in ["", "fan_out", "fan_out x", "replay 1", "walk 1"] {
            assert_eq!(Errand::decode(wrong), None, "{wrong}");
        }
    }
}
