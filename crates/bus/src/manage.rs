//! Topics and subscriptions: create, change, delete, pause, look.
//!
//! Every change is one write of the registry: the entry itself, and the revision that counts changes. The queue of a
//! subscription is made after its entry, and whoever misses it makes it ([`Bus::ensure_queue`]): a process that ends
//! between the two leaves nothing behind that the next one would not mend.

use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use redrive_broker::{Act, BrokerError, Trigger};
use redrive_core::invalid::Invalid;
use redrive_core::limits::{SUBSCRIPTIONS_MAX, TOPICS_MAX, WEBHOOK_SECRETS_MAX};
use redrive_core::message::State as MessageState;
use redrive_core::queue::{Pause, Queue, QueueConfig, QueueName};
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::{Millis, Timestamp};
use redrive_core::topic::TopicPattern;
use redrive_store::{
    CreateQueue, Expect, Limit, PauseQueue, QueueError, UpdateQueue, Write, WriteOutcome, Writes,
};

use crate::bus::Bus;
use crate::deliveries::Attempt;
use crate::dispatch::{Handler, Pump};
use crate::error::BusError;
use crate::record::Changed;
use crate::subscription::{
    DISABLE_AFTER_DEFAULT, Endpoint, Format, LiveSecret, State, Subscription, SubscriptionSettings, Target,
    WhyDisabled,
};
use crate::topic::{Dispatch, TopicConfig, TopicSettings};
use crate::view::revision_key;
use crate::webhook::{SigningSecret, WebhookUrl};

/// How often a change is tried again because others were faster.
const TRIES_MAX: usize = 16;
/// The longest time for which a secret that was replaced still signs.
const OVERLAP_MAX: Millis = Millis::from_days(7);

/// What may be set of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointSettings {
    /// Where it is.
    pub url: String,
    /// How events are written for it.
    pub format: Format,
    /// For how long it may do nothing but fail; `Some(None)` is for ever, `None` is as for most.
    pub disable_after: Option<Option<Millis>>,
}

/// Where the events of a new subscription go.
#[derive(Debug)]
pub enum NewTarget {
    /// To a function in this process.
    Handler,
    /// Into a queue.
    Queue(QueueName),
    /// To an endpoint, signed with that secret; without one, with a new one.
    Webhook(EndpointSettings, Option<SigningSecret>),
}

/// A subscription that is to be created.
#[derive(Debug)]
pub struct NewSubscription {
    /// Its name; without one it gets one.
    pub id: Option<SubscriptionId>,
    /// What is set.
    pub settings: SubscriptionSettings,
    /// Where its events go.
    pub target: NewTarget,
    /// From when on events that its topics retained are brought to it.
    pub replay_from: Option<Timestamp>,
}

/// What came into being.
#[derive(Debug)]
pub struct Created {
    /// The subscription.
    pub subscription: Arc<Subscription>,
    /// The secret of its webhook, which nobody is shown a second time.
    pub secret: Option<SigningSecret>,
}

/// What becomes of a subscription.
#[derive(Debug)]
pub struct SubscriptionChange {
    /// What is set from now on; what is not set here goes back to the defaults.
    pub settings: SubscriptionSettings,
    /// What is set of its endpoint; `None` leaves it as it is.
    pub endpoint: Option<EndpointSettings>,
    /// The version the caller saw; `None` overwrites whatever is there.
    pub expected: Option<u64>,
}

impl Bus {
    // Topics.

    /// Sets how events of some topics are dispatched and kept.
    pub async fn set_topic(
        &self,
        config: TopicConfig,
        expected: Option<u64>,
    ) -> Result<TopicSettings, BusError> {
        config.check()?;
        let pattern = config.pattern.clone();
        let what = Changed::Topic(pattern.as_str().to_owned());
        let set = self.change(&what, |bus, number| {
            let view = bus.view();
            let known = view.topic_of(&pattern);
            check_version(expected, known.map(|known| known.version))?;
            if known.is_none() && view.topics().count() >= TOPICS_MAX {
                return Err(BusError::TooMany { what: "topics", max: TOPICS_MAX });
            }
            let settings = TopicSettings {
                config: config.clone(),
                number: known.map_or(number, |known| known.number),
                sequenced: config.dispatch == Dispatch::Sequential
                    || known.is_some_and(|known| known.sequenced),
                version: 0,
                created_at: known.map_or(bus.broker.now(), |known| known.created_at),
            };
            let expect = known.map_or(Expect::Absent, |known| Expect::Version(known.version));
            Ok((expect, Some(settings.encode()), settings))
        });
        let (mut settings, version) = set.await?;
        settings.version = version;
        self.view_mut().put_topic(settings.clone());
        if settings.config.dispatch == Dispatch::Sequential {
            self.ensure_sequence(&settings).await?;
        }
        self.broker.tell_topics();
        self.sync_pump(Pump::Sequence(settings.number));
        Ok(settings)
    }

    /// What is set for a pattern.
    pub async fn topic(&self, pattern: &TopicPattern) -> Result<TopicSettings, BusError> {
        self.keep_up().await?;
        let found = self.view().topic_of(pattern).cloned();
        found.ok_or_else(|| BusError::TopicNotFound(pattern.clone()))
    }

    /// Everything that is set, by pattern.
    pub async fn topics(&self) -> Result<Vec<TopicSettings>, BusError> {
        self.keep_up().await?;
        let mut topics: Vec<TopicSettings> = self.view().topics().cloned().collect();
        topics.sort_unstable_by(|one, other| one.config.pattern.cmp(&other.config.pattern));
        Ok(topics)
    }

    /// Forgets what is set for a pattern, and the events that were kept for replays. Events that wait for their handlers
    /// keep it from going, unless by force.
    pub async fn delete_topic(&self, pattern: &TopicPattern, force: bool) -> Result<(), BusError> {
        let settings = self.topic(pattern).await?;
        let queue = settings.sequence_queue();
        let waiting = self.waiting_in(&queue).await?;
        if waiting > 0 && !force {
            return Err(BusError::TopicNotEmpty { pattern: pattern.clone(), waiting });
        }
        let what = Changed::Topic(pattern.as_str().to_owned());
        let gone = self.change(&what, |bus, _| {
            let known = bus.view().topic_of(pattern).map(|known| known.version);
            let known = known.ok_or_else(|| BusError::TopicNotFound(pattern.clone()))?;
            Ok((Expect::Version(known), None, ()))
        });
        gone.await?;
        self.view_mut().remove_topic(pattern);
        self.sync_pump(Pump::Sequence(settings.number));
        self.delete_queue(queue).await?;
        self.forget_retained(&settings).await?;
        self.broker.tell_topics();
        Ok(())
    }

    /// How many messages are in a queue that may not be there.
    async fn waiting_in(&self, queue: &QueueName) -> Result<u64, BusError> {
        match self.broker.stats(queue).await {
            Ok(stats) => Ok(MessageState::ALL.into_iter().map(|state| stats.states.of(state)).sum()),
            Err(BrokerError::Queue(QueueError::NotFound(_))) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    // Subscriptions.

    /// Creates a subscription. Events that are published after this returns come to it.
    pub async fn create_subscription(&self, new: NewSubscription) -> Result<Created, BusError> {
        let NewSubscription { id, settings, target, replay_from } = new;
        let (target, secret) = self.target(target)?;
        settings.check(&target)?;
        if let Target::Queue(queue) = &target {
            self.broker.get_queue(queue).await?;
        }
        let id = match id {
            Some(id) => id,
            None => self.new_id()?,
        };
        let what = Changed::Subscription(id.as_str().to_owned());
        let made = self.change(&what, |bus, number| {
            let view = bus.view();
            if view.subscription(&id).is_some() {
                return Err(BusError::SubscriptionExists(id.clone()));
            }
            if view.len() >= SUBSCRIPTIONS_MAX {
                return Err(BusError::TooMany { what: "subscriptions", max: SUBSCRIPTIONS_MAX });
            }
            let subscription = Subscription {
                id: id.clone(),
                version: 0,
                order: number,
                created_at: bus.broker.now(),
                target: target.clone(),
                settings: settings.clone(),
                state: State::Active,
                failing_since: None,
            };
            Ok((Expect::Absent, Some(subscription.encode()), subscription))
        });
        let (subscription, version) = made.await?;
        let subscription = self.changed(subscription, version, Act::Created);
        self.ensure_queue(&subscription).await?;
        if let Some(from) = replay_from {
            self.replay(&id, from).await?;
        }
        Ok(Created { subscription, secret })
    }

    /// A name for a subscription that was given none.
    pub(crate) fn new_id(&self) -> Result<SubscriptionId, BusError> {
        let id = self.broker.event_ids(1)?.pop().map(|id| id.to_string()).unwrap_or_default();
        Ok(SubscriptionId::new(format!("s-{id}"))?)
    }

    /// The target, and the secret that whoever asked has to be shown.
    fn target(&self, target: NewTarget) -> Result<(Target, Option<SigningSecret>), BusError> {
        Ok(match target {
            NewTarget::Handler => (Target::Handler, None),
            NewTarget::Queue(queue) => (Target::Queue(queue), None),
            NewTarget::Webhook(settings, given) => {
                let made = if given.is_none() { Some(SigningSecret::generate()?) } else { None };
                let secrets = given.or_else(|| made.clone()).into_iter();
                let secrets = secrets.map(|secret| LiveSecret { secret, until: None }).collect();
                (Target::Webhook(self.endpoint(settings, secrets)?), made)
            }
        })
    }

    fn endpoint(&self, settings: EndpointSettings, secrets: Vec<LiveSecret>) -> Result<Endpoint, BusError> {
        let EndpointSettings { url, format, disable_after } = settings;
        let Some(webhooks) = &self.webhooks else {
            return Err(BusError::WrongTarget { what: "webhooks are not sent from here", kind: "webhook" });
        };
        let disable_after = disable_after.unwrap_or(Some(DISABLE_AFTER_DEFAULT));
        if let Some(time) = disable_after {
            time.within("target.disable_after", Millis::from_secs(60), Millis::from_days(365))?;
        }
        Ok(Endpoint { url: WebhookUrl::parse(&url, webhooks.guard())?, format, disable_after, secrets })
    }

    /// A subscription.
    pub async fn subscription(&self, id: &SubscriptionId) -> Result<Arc<Subscription>, BusError> {
        self.keep_up().await?;
        self.known_subscription(id)
    }

    fn known_subscription(&self, id: &SubscriptionId) -> Result<Arc<Subscription>, BusError> {
        self.view().subscription(id).ok_or_else(|| BusError::SubscriptionNotFound(id.clone()))
    }

    /// Subscriptions by name, after the one given.
    pub async fn subscriptions(
        &self,
        after: Option<&SubscriptionId>,
        limit: Limit,
    ) -> Result<Vec<Arc<Subscription>>, BusError> {
        self.keep_up().await?;
        Ok(self.view().after(after).take(limit.get()).cloned().collect())
    }

    /// Gives a subscription its function, in this process. Events that waited for it come now.
    pub async fn handle(&self, id: &SubscriptionId, handler: Arc<dyn Handler>) -> Result<(), BusError> {
        let subscription = self.subscription(id).await?;
        if !matches!(subscription.target, Target::Handler) {
            return Err(BusError::WrongTarget { what: "handler", kind: subscription.target.kind() });
        }
        let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        handlers.insert(id.clone(), handler);
        drop(handlers);
        self.sync_pump(Pump::Subscription(id.clone()));
        Ok(())
    }

    /// Takes the function of a subscription away. Events wait from then on, or go to another instance. What it was given from
    /// the subscription's own queue has ended, or was given back, when this returns.
    pub async fn stop_handling(&self, id: &SubscriptionId) {
        self.forget_handler(id);
        self.end_pump(&Pump::Subscription(id.clone())).await;
    }

    fn forget_handler(&self, id: &SubscriptionId) {
        let handler = self.handlers.write().unwrap_or_else(PoisonError::into_inner).remove(id);
        // Whatever its end leads to, the lock is free again.
        drop(handler);
    }

    /// The last attempts of a subscription at this instance, the newest first.
    pub fn attempts(&self, id: &SubscriptionId) -> Vec<Attempt> {
        self.deliveries.of(id)
    }

    /// Changes what is set of a subscription. What waits for it is judged by that at once.
    pub async fn update_subscription(
        &self,
        id: &SubscriptionId,
        change: SubscriptionChange,
    ) -> Result<Arc<Subscription>, BusError> {
        let SubscriptionChange { settings, endpoint, expected } = change;
        let updated = self.change_subscription(id, Act::Updated, |bus, known| {
            check_version(expected, Some(known.version))?;
            let target = match (&known.target, &endpoint) {
                (Target::Webhook(old), Some(new)) => {
                    Target::Webhook(bus.endpoint(new.clone(), old.secrets.clone())?)
                }
                (target, None) => target.clone(),
                (target, Some(_)) => {
                    return Err(BusError::WrongTarget { what: "target.url", kind: target.kind() });
                }
            };
            settings.check(&target)?;
            Ok(Subscription { target, settings: settings.clone(), ..known.clone() })
        });
        let updated = updated.await?;
        self.ensure_queue(&updated).await?;
        Ok(updated)
    }

    /// Deletes a subscription, with the deliveries that wait for it and its dead letters. A plain queue stays.
    pub async fn delete_subscription(&self, id: &SubscriptionId) -> Result<(), BusError> {
        self.keep_up().await?;
        let what = Changed::Subscription(id.as_str().to_owned());
        let gone = self.change(&what, |bus, _| {
            let known = bus.known_subscription(id)?;
            Ok((Expect::Version(known.version), None, known))
        });
        let (gone, _) = gone.await?;
        self.view_mut().remove(id);
        self.forget_handler(id);
        self.sync_pump(Pump::Subscription(id.clone()));
        self.health.forget(id);
        self.deliveries.forget(id);
        self.in_flight.forget(id);
        self.metrics.forget(id);
        self.broker.tell_subscription(id, Act::Deleted, Trigger::Operator);
        if gone.owns_queue() { self.delete_queue(gone.queue()).await } else { Ok(()) }
    }

    /// Events come and wait, until it is resumed.
    pub async fn pause_subscription(&self, id: &SubscriptionId) -> Result<Arc<Subscription>, BusError> {
        self.pause(id, true).await
    }

    /// What waited goes on. One that was disabled is enabled.
    pub async fn resume_subscription(&self, id: &SubscriptionId) -> Result<Arc<Subscription>, BusError> {
        self.pause(id, false).await
    }

    /// Pauses go through the queue as well, so that whoever asks why a message waits is told.
    async fn pause(&self, id: &SubscriptionId, paused: bool) -> Result<Arc<Subscription>, BusError> {
        let act = if paused { Act::Paused } else { Act::Resumed };
        let changed = self.change_subscription(id, act, |_, known| {
            if let Target::Queue(_) = known.target {
                return Err(BusError::WrongTarget { what: "pause the queue instead", kind: "queue" });
            }
            let state = if paused { State::Paused } else { State::Active };
            Ok(Subscription { state, failing_since: None, ..known.clone() })
        });
        let changed = changed.await?;
        self.pause_own_queue(&changed, paused.then_some(Pause::UntilResumed)).await?;
        Ok(changed)
    }

    /// Switches a subscription off: nothing comes to it, nothing goes out, and what waits stays.
    pub async fn disable_subscription(
        &self,
        id: &SubscriptionId,
        why: WhyDisabled,
    ) -> Result<Arc<Subscription>, BusError> {
        let at = self.broker.now();
        self.change_subscription(id, Act::Disabled, |_, known| {
            Ok(Subscription { state: State::Disabled { at, why }, ..known.clone() })
        })
        .await
    }

    /// Switches a subscription on again. Events that were published meanwhile do not come, unless they are replayed.
    pub async fn enable_subscription(&self, id: &SubscriptionId) -> Result<Arc<Subscription>, BusError> {
        let enabled = self.change_subscription(id, Act::Enabled, |_, known| {
            let state = if known.state == State::Paused { State::Paused } else { State::Active };
            Ok(Subscription { state, failing_since: None, ..known.clone() })
        });
        let enabled = enabled.await?;
        // It may have been paused before it was switched off.
        if enabled.owns_queue() && enabled.state == State::Active && self.is_queue_paused(&enabled).await? {
            self.pause_own_queue(&enabled, None).await?;
        }
        Ok(enabled)
    }

    async fn is_queue_paused(&self, subscription: &Subscription) -> Result<bool, BusError> {
        let queue = self.broker.store().get_queue(&subscription.queue()).await?;
        Ok(queue.is_some_and(|queue| queue.pauses.queue.is_some()))
    }

    async fn pause_own_queue(
        &self,
        subscription: &Subscription,
        pause: Option<Pause>,
    ) -> Result<(), BusError> {
        self.ensure_queue(subscription).await?;
        self.broker.pause_queue(PauseQueue { name: subscription.queue(), key: None, pause }).await?;
        Ok(())
    }

    /// Replaces the secret of a webhook. The ones before sign as well for as long as `overlap` says.
    pub async fn rotate_secret(
        &self,
        id: &SubscriptionId,
        given: Option<SigningSecret>,
        overlap: Millis,
    ) -> Result<Created, BusError> {
        overlap.within("overlap", Millis::ZERO, OVERLAP_MAX)?;
        let made = if given.is_none() { Some(SigningSecret::generate()?) } else { None };
        let Some(newest) = given.or_else(|| made.clone()) else {
            return Err(Invalid::unusable("secret", "is needed").into());
        };
        let now = self.broker.now();
        let rotated = self.change_subscription(id, Act::Rotated, |_, known| {
            let Target::Webhook(endpoint) = &known.target else {
                return Err(BusError::WrongTarget { what: "secret", kind: known.target.kind() });
            };
            let mut endpoint = endpoint.clone();
            let end = now.plus(overlap);
            for old in &mut endpoint.secrets {
                old.until = Some(old.until.map_or(end, |until| until.min(end)));
            }
            endpoint.secrets.retain(|old| old.until.is_none_or(|until| until > now));
            endpoint.secrets.insert(0, LiveSecret { secret: newest.clone(), until: None });
            Invalid::check_length("secrets", endpoint.secrets.len(), WEBHOOK_SECRETS_MAX, "items")?;
            Ok(Subscription { target: Target::Webhook(endpoint), ..known.clone() })
        });
        Ok(Created { subscription: rotated.await?, secret: made })
    }

    // What they have in common.

    /// Changes one subscription.
    pub(crate) async fn change_subscription(
        &self,
        id: &SubscriptionId,
        act: Act,
        change: impl Fn(&Self, &Subscription) -> Result<Subscription, BusError>,
    ) -> Result<Arc<Subscription>, BusError> {
        self.keep_up().await?;
        let what = Changed::Subscription(id.as_str().to_owned());
        let written = self.change(&what, |bus, _| {
            let known = bus.known_subscription(id)?;
            let changed = change(bus, &known)?;
            Ok((Expect::Version(known.version), Some(changed.encode()), changed))
        });
        let (changed, version) = written.await?;
        Ok(self.changed(changed, version, act))
    }

    /// Takes over a subscription as it was written.
    fn changed(&self, mut subscription: Subscription, version: u64, act: Act) -> Arc<Subscription> {
        subscription.version = version;
        let subscription = Arc::new(subscription);
        self.view_mut().put(Arc::clone(&subscription));
        self.sync_pump(Pump::Subscription(subscription.id.clone()));
        let trigger = match subscription.state {
            State::Disabled { why: WhyDisabled::Gone | WhyDisabled::Failing, .. } => Trigger::Scheduler,
            _ => Trigger::Operator,
        };
        self.broker.tell_subscription(&subscription.id, act, trigger);
        subscription
    }

    /// Writes an entry and counts the change, in one step. Where another instance was faster, what it did is read and the
    /// change is made on that. Answers the version that the entry has now.
    async fn change<T>(
        &self,
        what: &Changed,
        make: impl Fn(&Self, u64) -> Result<(Expect, Option<Bytes>, T), BusError>,
    ) -> Result<(T, u64), BusError> {
        let _one = self.changing.lock().await;
        for _ in 0..TRIES_MAX {
            let (next, counted) = {
                let view = self.view();
                (view.revision().next(what.clone()), view.revision_expect())
            };
            let (expect, value, result) = make(self, next.number)?;
            let entry = Write { key: what.key()?, expect, value };
            let count = Write { key: revision_key(), expect: counted, value: Some(next.encode()) };
            match self.broker.store().registry_write(Writes::new(vec![entry, count])?).await? {
                WriteOutcome::Committed(versions) => {
                    let [entry, count] = <[Option<u64>; 2]>::try_from(versions).unwrap_or_default();
                    self.view_mut().set_revision(next, count.unwrap_or_default());
                    return Ok((result, entry.unwrap_or_default()));
                }
                WriteOutcome::Conflict { .. } => self.refresh().await?,
            }
        }
        Err(BusError::Busy)
    }

    /// Makes sure that the queue of a subscription is there, and is set as the subscription is. One that is older than the
    /// subscription belonged to another of its name, whose end was cut short.
    pub(crate) async fn ensure_queue(&self, subscription: &Subscription) -> Result<(), BusError> {
        if !subscription.owns_queue() {
            return Ok(());
        }
        let name = subscription.queue();
        let found = self.broker.store().get_queue(&name).await?;
        let found = match found {
            Some(old) if old.created_at < subscription.created_at => {
                self.delete_queue(name.clone()).await?;
                None
            }
            found => found,
        };
        self.ensure(name, found, subscription.queue_config()).await
    }

    /// Makes sure that the queue of a sequential topic is there.
    pub(crate) async fn ensure_sequence(&self, settings: &TopicSettings) -> Result<(), BusError> {
        let name = settings.sequence_queue();
        let found = self.broker.store().get_queue(&name).await?;
        self.ensure(name, found, crate::dispatch::sequence_config()).await
    }

    pub(crate) async fn ensure(
        &self,
        name: QueueName,
        found: Option<Queue>,
        config: QueueConfig,
    ) -> Result<(), BusError> {
        match found {
            Some(queue) if queue.config == config => Ok(()),
            Some(_) => {
                self.broker.update_own_queue(UpdateQueue { name, config, expected: None }).await?;
                Ok(())
            }
            None => match self.broker.create_own_queue(CreateQueue { name, config }).await {
                Ok(_) | Err(BrokerError::Queue(QueueError::AlreadyExists(_))) => Ok(()),
                Err(error) => Err(error.into()),
            },
        }
    }

    pub(crate) async fn delete_queue(&self, name: QueueName) -> Result<(), BusError> {
        match self.broker.delete_own_queue(name).await {
            Ok(()) | Err(BrokerError::Queue(QueueError::NotFound(_))) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Refuses a change of something else than the caller saw.
fn check_version(expected: Option<u64>, actual: Option<u64>) -> Result<(), BusError> {
    match (expected, actual.unwrap_or_default()) {
        (Some(expected), actual) if expected != actual => Err(BusError::VersionMismatch { actual }),
        _ => Ok(()),
    }
}
