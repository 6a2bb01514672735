//! What may be done to subscriptions: look, pause, bring back what died, end.

use std::time::SystemTime;

use bytes::Bytes;
use redrive_broker::{BreakerView, Work};
use redrive_bus::{DeadDelivery, State as SubscriptionState};
use redrive_client::Stats;
use redrive_core::message::Note;
use redrive_core::subscription::SubscriptionId;
use redrive_store::Limit;

use super::{EventBus, ReplayFrom};
use crate::convert;
use crate::dead::{Which, applied};
use crate::error::Error;

pub use redrive_core::policy::BreakerState;

/// A subscription, as far as one can see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionInfo {
    /// Its name.
    pub name: String,
    /// Of which topics.
    pub pattern: String,
    /// To where: `handler`, `webhook` or `queue`.
    pub target: &'static str,
    /// Whether its events wait until it is resumed.
    pub paused: bool,
    /// Whether it was switched off, and gets no events.
    pub disabled: bool,
}

/// The breaker of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    /// In which state it is.
    pub state: BreakerState,
    /// Until when nothing is delivered, where it is open; by the broker's clock.
    pub open_until: Option<SystemTime>,
    /// How many events have an outcome in its window.
    pub messages: u32,
    /// How many of them failed the last time.
    pub failed: u32,
}

impl From<BreakerView> for Breaker {
    fn from(view: BreakerView) -> Self {
        Self {
            state: view.state,
            open_until: view.open_until.map(convert::system_time),
            messages: view.tally.messages,
            failed: view.tally.failed,
        }
    }
}

/// An event that was given up for a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadEvent {
    /// Its id.
    pub id: String,
    /// What it is about.
    pub topic: String,
    /// What kind of event it is.
    pub kind: String,
    /// What it carries.
    pub body: Bytes,
    /// How often it was tried.
    pub attempts: u32,
    /// Why it was given up: `max_attempts`, `buried`, or `not_reached`, where handlers run one after another and it died before the
    /// turn of this one came.
    pub reason: &'static str,
    /// What went wrong the last time.
    pub error: String,
    /// The same for all whose errors are alike.
    pub fingerprint: String,
}

impl From<DeadDelivery> for DeadEvent {
    fn from(dead: DeadDelivery) -> Self {
        let topic = dead.event().topic;
        let DeadDelivery { message, reason } = dead;
        let fingerprint = message.progress.death().map(|death| death.fingerprint.to_string());
        Self {
            id: message.spec.id.to_string(),
            topic,
            kind: message.spec.kind.as_str().to_owned(),
            body: message.spec.body.bytes().clone(),
            attempts: message.progress.attempts,
            reason: reason.name(),
            error: message.history.last_error.map(|error| error.as_str().to_owned()).unwrap_or_default(),
            fingerprint: fingerprint.unwrap_or_default(),
        }
    }
}

impl EventBus {
    /// Every subscription, by name.
    pub async fn subscriptions(&self) -> Result<Vec<SubscriptionInfo>, Error> {
        let bus = self.bus().await?;
        let mut all: Vec<SubscriptionInfo> = Vec::new();
        let mut after: Option<SubscriptionId> = None;
        loop {
            let page = bus.subscriptions(after.as_ref(), Limit::MAX).await?;
            all.extend(page.iter().map(|one| SubscriptionInfo {
                name: one.id.as_str().to_owned(),
                pattern: one.settings.pattern.as_str().to_owned(),
                target: one.target.kind(),
                paused: one.state == SubscriptionState::Paused,
                disabled: matches!(one.state, SubscriptionState::Disabled { .. }),
            }));
            after = page.last().map(|one| one.id.clone());
            if after.is_none() {
                return Ok(all);
            }
        }
    }

    /// Ends a subscription, and with it the events that wait for it and its dead letters.
    pub async fn unsubscribe(&self, name: &str) -> Result<(), Error> {
        let slot = self.slot()?;
        slot.bus().await?.delete_subscription(&name.parse()?).await?;
        slot.release(name);
        Ok(())
    }

    /// Events come and wait, until it is resumed.
    pub async fn pause(&self, name: &str) -> Result<(), Error> {
        self.bus().await?.pause_subscription(&name.parse()?).await?;
        Ok(())
    }

    /// What waited goes on. A webhook that was switched off is on again.
    pub async fn resume(&self, name: &str) -> Result<(), Error> {
        self.bus().await?.resume_subscription(&name.parse()?).await?;
        Ok(())
    }

    /// How many events wait for a subscription, are under way, or are dead. Those of topics whose handlers run one after another
    /// are in the [queue of the topic](super::Topic::queue).
    pub async fn stats(&self, name: &str) -> Result<Stats, Error> {
        let bus = self.bus().await?;
        let queue = bus.subscription(&name.parse()?).await?.queue();
        Ok(convert::stats(&bus.broker().stats(&queue).await?))
    }

    /// Brings events of the past to a subscription once more, in the background.
    pub async fn replay(&self, name: &str, from: impl Into<ReplayFrom>) -> Result<(), Error> {
        let bus = self.bus().await?;
        let from = from.into().timestamp(bus.broker().now());
        bus.replay(&name.parse()?, from).await?;
        Ok(())
    }

    /// Events that are dead for a subscription, at most a thousand of them.
    pub async fn dead(&self, name: &str) -> Result<Vec<DeadEvent>, Error> {
        let (dead, _) = self.bus().await?.dead(&name.parse()?, None, Limit::MAX).await?;
        Ok(dead.into_iter().map(DeadEvent::from).collect())
    }

    /// Brings everything that is dead for a subscription back to it, and to nobody else: ready, with no attempt counted. Who asked
    /// for that, and why, is kept with the events. Answers how many.
    pub async fn redrive(&self, name: &str, by: &str, reason: &str) -> Result<u64, Error> {
        self.redrive_some(name, Which::All, by, reason).await
    }

    /// The same for some of them.
    pub async fn redrive_some(&self, name: &str, which: Which, by: &str, reason: &str) -> Result<u64, Error> {
        let bus = self.bus().await?;
        let work = Work::Redrive { by: Note::new(by)?, reason: Note::new(reason)? };
        let mut redriven = 0;
        for operation in bus.redrive(&name.parse()?, which.filter()?, work, None).await? {
            redriven += applied(bus.broker(), operation.id).await?;
        }
        Ok(redriven)
    }

    /// The breaker of a subscription; `None` where it has none.
    pub async fn breaker(&self, name: &str) -> Result<Option<Breaker>, Error> {
        let (bus, id) = (self.bus().await?, name.parse::<SubscriptionId>()?);
        let queue = bus.subscription(&id).await?.queue();
        Ok(bus.broker().breaker(&queue).await?.map(Breaker::from))
    }

    /// Opens the breaker of a subscription: nothing is delivered, until its time is over.
    pub async fn trip_breaker(&self, name: &str) -> Result<(), Error> {
        self.set_breaker(name, true).await
    }

    /// Closes the breaker of a subscription: deliveries go on.
    pub async fn reset_breaker(&self, name: &str) -> Result<(), Error> {
        self.set_breaker(name, false).await
    }

    async fn set_breaker(&self, name: &str, open: bool) -> Result<(), Error> {
        let (bus, id) = (self.bus().await?, name.parse::<SubscriptionId>()?);
        let queue = bus.subscription(&id).await?.queue();
        Ok(bus.broker().set_breaker(&queue, open).await?)
    }
}
