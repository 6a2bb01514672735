//! resend: one event once more to one subscription, by whichever way there is.
//!
//! Where it died it is redriven, where it waits it is tried now, and where it is over its topic may have retained it: then it is
//! enqueued again, for this subscription and for nobody else.

use redrive_broker::BrokerError;
use redrive_core::lifecycle::{Reschedule, When};
use redrive_core::message::{Message, MessageId, Note, Phase, State as MessageState};
use redrive_core::queue::QueueName;
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::Millis;
use redrive_store::{Bulk, Filter, Selection};

use crate::bus::Bus;
use crate::error::BusError;
use crate::event;
use crate::retain::Retained;
use crate::subscription::Subscription;
use crate::topic::TopicSettings;

/// By how much the clock that an event's id was made by may be ahead of the one that stamped its record.
const AHEAD_MAX: Millis = Millis::from_secs(1);
/// How long after its id was made an event may have been written.
const BEHIND_MAX: Millis = Millis::from_secs(60);
/// Most events that are looked at to find one.
const LOOKED_AT_MAX: usize = 100_000;

/// By which way an event comes once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resent {
    /// It was dead, and is ready again.
    Redriven,
    /// It waited for its next attempt, which is now.
    RetriedNow,
    /// It was over, and its topic had it.
    Enqueued,
}

impl Resent {
    /// Every way.
    pub const ALL: [Self; 3] = [Self::Redriven, Self::RetriedNow, Self::Enqueued];

    /// The word for it in APIs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Redriven => "redriven",
            Self::RetriedNow => "retried_now",
            Self::Enqueued => "enqueued",
        }
    }
}

impl Bus {
    /// Brings an event to a subscription once more; `by` is who asks.
    pub async fn resend(&self, id: &SubscriptionId, event: MessageId, by: Note) -> Result<Resent, BusError> {
        let subscription = self.subscription(id).await?;
        for queue in self.places(&subscription) {
            if let Some(message) = self.broker.store().get(&queue, event).await?
                && self.is_for(&subscription, &message)
            {
                return self.hurry(queue, &message, by).await;
            }
        }
        let topics: Vec<TopicSettings> = self.view().topics().cloned().collect();
        for settings in topics.iter().filter(|settings| settings.config.retain.is_some()) {
            if let Some(kept) = self.find_retained(settings, event).await?
                && subscription.wants(&kept)
            {
                self.bring(vec![event::message(subscription.queue(), kept.spec()?, None)]).await?;
                return Ok(Resent::Enqueued);
            }
        }
        Err(BusError::EventNotFound { event, subscription: id.clone() })
    }

    /// The queues in which an event of a subscription may be: where it goes, and those of sequential topics.
    fn places(&self, subscription: &Subscription) -> Vec<QueueName> {
        let sequences = self.view().topics().map(TopicSettings::sequence_queue).collect::<Vec<_>>();
        [subscription.queue()].into_iter().chain(sequences).collect()
    }

    /// Whether a message of one of these is still to be brought to the subscription.
    fn is_for(&self, subscription: &Subscription, message: &Message) -> bool {
        message.queue == subscription.queue() || self.is_left_for(subscription, message)
    }

    /// Does what can be done about a message that is there.
    async fn hurry(&self, queue: QueueName, message: &Message, by: Note) -> Result<Resent, BusError> {
        let only = Selection::new(queue, Filter::ids([message.id()]));
        match &message.progress.phase {
            Phase::Dead(_) => {
                applied(&self.broker.redrive(only, by, Note::new("resent")?).await?)?;
                Ok(Resent::Redriven)
            }
            Phase::Waiting => {
                // What is ready keeps its place: another time would put it behind others.
                if message.state(self.broker.now()) == MessageState::Delayed {
                    let now = Reschedule { visible: Some(When::Now), priority: None };
                    applied(&self.broker.reschedule(only, now).await?)?;
                }
                Ok(Resent::RetriedNow)
            }
            Phase::Leased(_) => Err(not_now("an attempt is under way: see first what comes of it")),
            Phase::Done(_) => {
                Err(not_now("it is done, and its queue keeps it as such: discard it there first"))
            }
        }
    }

    /// An event that was kept, by its id. Ids and records are both in the order of time, so that only a part of them is read.
    async fn find_retained(
        &self,
        settings: &TopicSettings,
        event: MessageId,
    ) -> Result<Option<Retained>, BusError> {
        let made = event.made_at();
        let mut after = self.retained_since(settings, made.minus(AHEAD_MAX)).await?;
        let mut looked_at = 0;
        loop {
            let (mut events, end) = self.retained(settings, after).await?;
            if let Some(at) = events.iter().position(|kept| kept.id == event) {
                return Ok(Some(events.swap_remove(at)));
            }
            looked_at += events.len();
            let last = events.last().filter(|last| last.at <= made.plus(BEHIND_MAX));
            let Some(last) = last.filter(|_| !end && looked_at < LOOKED_AT_MAX) else { return Ok(None) };
            after = last.sequence;
        }
    }
}

impl Subscription {
    /// Whether it would have been given an event that was kept.
    pub(crate) fn wants(&self, kept: &Retained) -> bool {
        self.settings.pattern.matches(&kept.topic) && self.settings.filter.passes(&kept.event.headers)
    }
}

/// What was done to one message was done, or says why not.
fn applied(bulk: &Bulk) -> Result<(), BrokerError> {
    match bulk.refused.first() {
        Some((_, refusal)) => {
            Err(BrokerError::NotApplied { code: refusal.code(), detail: refusal.to_string() })
        }
        None if bulk.applied.is_empty() => Err(wrong_state("it is in another state by now: look again")),
        None => Ok(()),
    }
}

fn not_now(detail: &str) -> BusError {
    wrong_state(detail).into()
}

fn wrong_state(detail: &str) -> BrokerError {
    BrokerError::NotApplied { code: "WRONG_STATE", detail: detail.to_owned() }
}
