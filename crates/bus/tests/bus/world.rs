//! A broker and a bus in a time of their own.
//!
//! The runtime's clock is paused: whenever every task waits, it jumps to what comes next. So an outage of ten minutes takes a
//! moment, and nothing depends on how fast the machine is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use futures::FutureExt;
use redrive_broker::{Background, Broker, BrokerConfig, Clock, pause};
use redrive_bus::{
    Bus, BusBackground, BusConfig, Dispatch, HandlerFailure, Incoming, NewEvent, NewSubscription, NewTarget,
    Published, Subscription, SubscriptionSettings, TopicConfig,
};
use redrive_core::message::{Body, Headers, MessageId, State};
use redrive_core::policy::{BreakerConfig, RetryOverride};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::receipt::ReceiptKey;
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::{Millis, Timestamp};
use redrive_core::topic::Topic;
use redrive_store::Store;
use redrive_store_memory::{MemoryStore, Options};
use tokio::time::Instant;

/// When every world begins.
pub(crate) const START: u64 = 1_000_000;

/// The runtime's time, as the broker reads it.
#[derive(Debug)]
pub(crate) struct Virtual {
    start: Instant,
    offset: u64,
}

#[async_trait]
impl Clock for Virtual {
    fn now(&self) -> Timestamp {
        let elapsed = u64::try_from(self.start.elapsed().as_millis()).unwrap();
        Timestamp::from_millis(START + self.offset + elapsed)
    }

    async fn until(&self, at: Timestamp) {
        loop {
            let left = at.since(self.now());
            if left == Millis::ZERO {
                return;
            }
            pause(left).await;
        }
    }
}

/// The same for a journal, which has a clock of its own.
impl redrive_store_embedded::Clock for Virtual {
    fn wall(&self) -> Timestamp {
        self.now()
    }

    fn uptime(&self) -> Millis {
        self.now().since(Timestamp::EPOCH)
    }
}

/// One attempt that a handler saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) subscription: String,
    pub(crate) event: MessageId,
    pub(crate) body: String,
    pub(crate) attempt: u32,
    /// Since the world began, in milliseconds.
    pub(crate) at: u64,
}

/// What handlers saw, over all crashes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Seen>>>);

impl Log {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.0.lock().unwrap()
    }

    pub(crate) fn of(&self, subscription: &str) -> Vec<Seen> {
        self.lock().iter().filter(|seen| seen.subscription == subscription).cloned().collect()
    }

    /// When each attempt of a subscription began.
    pub(crate) fn times(&self, subscription: &str) -> Vec<u64> {
        self.of(subscription).iter().map(|seen| seen.at).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }
}

pub(crate) struct World {
    pub(crate) bus: Bus,
    pub(crate) broker: Broker,
    pub(crate) clock: Arc<Virtual>,
    pub(crate) log: Log,
    /// What is left when the process ends; a world on a journal has no end.
    store: Option<Arc<MemoryStore>>,
    background: Option<(BusBackground, Background)>,
    config: BusConfig,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(BusConfig::default()).await
    }

    pub(crate) async fn with(config: BusConfig) -> Self {
        let store = Arc::new(MemoryStore::new(Options::new(ReceiptKey::new([7; 32]))));
        let clock = Arc::new(Virtual { start: Instant::now(), offset: 0 });
        Self::over(store, clock, Log::default(), config).await
    }

    /// The same over a journal on a disk that is none: it is quick, however many messages there are.
    pub(crate) async fn on_journal() -> Self {
        let clock = Arc::new(Virtual { start: Instant::now(), offset: 0 });
        let disk = Arc::new(redrive_store_embedded::disk::SimulatedDisk::new(1));
        let journal = Arc::clone(&clock) as Arc<dyn redrive_store_embedded::Clock>;
        let options = redrive_store_embedded::Options::default();
        let (store, _) = redrive_store_embedded::EmbeddedStore::stepped(disk, journal, options).unwrap();
        Self::on(Arc::new(store), None, clock, Log::default(), BusConfig::default()).await
    }

    async fn over(store: Arc<MemoryStore>, clock: Arc<Virtual>, log: Log, config: BusConfig) -> Self {
        let shared = Arc::clone(&store) as Arc<dyn Store>;
        Self::on(shared, Some(store), clock, log, config).await
    }

    async fn on(
        shared: Arc<dyn Store>,
        store: Option<Arc<MemoryStore>>,
        clock: Arc<Virtual>,
        log: Log,
        config: BusConfig,
    ) -> Self {
        let (broker, background) =
            Broker::start(shared, Arc::clone(&clock) as Arc<dyn Clock>, BrokerConfig::default())
                .await
                .unwrap();
        let (bus, upkeep) = Bus::start(broker.clone(), config.clone()).await.unwrap();
        Self { bus, broker, clock, log, store, background: Some((upkeep, background)), config }
    }

    /// The process ends without a word, and another one begins on the same data.
    pub(crate) async fn crash(mut self) -> Self {
        drop(self.background.take());
        let store = self.store.as_ref().expect("a world in memory").reopen(self.clock.now()).unwrap();
        let store = Arc::new(store);
        let clock = Arc::clone(&self.clock);
        let (log, config) = (self.log.clone(), self.config.clone());
        drop(self);
        Self::over(store, clock, log, config).await
    }

    /// The process ends as it should, and another one begins.
    pub(crate) async fn restart(mut self) -> Self {
        if let Some((bus, broker)) = self.background.take() {
            bus.stop().await;
            broker.stop().await;
        }
        self.crash().await
    }

    /// Milliseconds since the world began.
    pub(crate) fn elapsed(&self) -> u64 {
        self.clock.now().as_millis() - START
    }

    /// Subscribes a handler that says what `answer` does of every attempt.
    pub(crate) async fn handler(
        &self,
        id: &str,
        settings: SubscriptionSettings,
        answer: impl Fn(&Seen) -> Result<(), HandlerFailure> + Send + Sync + 'static,
    ) -> Arc<Subscription> {
        let new = NewSubscription {
            id: Some(SubscriptionId::new(id).unwrap()),
            settings,
            target: NewTarget::Handler,
            replay_from: None,
        };
        let made = self.bus.create_subscription(new).await.unwrap().subscription;
        self.attach(id, answer).await;
        made
    }

    /// Gives a subscription that is there its function.
    pub(crate) async fn attach(
        &self,
        id: &str,
        answer: impl Fn(&Seen) -> Result<(), HandlerFailure> + Send + Sync + 'static,
    ) {
        let (log, clock) = (self.log.clone(), Arc::clone(&self.clock));
        let answer = Arc::new(answer);
        let handle = move |incoming: Incoming| {
            let seen = Seen {
                subscription: incoming.subscription.as_str().to_owned(),
                event: incoming.event.id,
                body: String::from_utf8_lossy(incoming.event.body.bytes()).into_owned(),
                attempt: incoming.attempt,
                at: clock.now().as_millis() - START,
            };
            log.lock().push(seen.clone());
            let answer = Arc::clone(&answer);
            async move { answer(&seen) }.boxed()
        };
        self.bus.handle(&SubscriptionId::new(id).unwrap(), Arc::new(handle)).await.unwrap();
    }

    pub(crate) async fn queue_subscription(&self, id: &str, pattern: &str, queue: &str) -> Arc<Subscription> {
        let queue = QueueName::new(queue).unwrap();
        if self.broker.get_queue(&queue).await.is_err() {
            let request = redrive_store::CreateQueue { name: queue.clone(), config: QueueConfig::default() };
            self.broker.create_queue(request).await.unwrap();
        }
        let new = NewSubscription {
            id: Some(SubscriptionId::new(id).unwrap()),
            settings: settings(pattern),
            target: NewTarget::Queue(queue),
            replay_from: None,
        };
        self.bus.create_subscription(new).await.unwrap().subscription
    }

    pub(crate) async fn sequential(&self, pattern: &str) {
        let pattern = pattern.parse().unwrap();
        let config = TopicConfig { pattern, dispatch: Dispatch::Sequential, retain: None };
        self.bus.set_topic(config, None).await.unwrap();
    }

    pub(crate) async fn publish(&self, topic: &str, body: &str) -> Published {
        self.publish_all(topic, [body]).await.pop().unwrap()
    }

    pub(crate) async fn publish_all<'a>(
        &self,
        topic: &str,
        bodies: impl IntoIterator<Item = &'a str>,
    ) -> Vec<Published> {
        let topic: Topic = topic.parse().unwrap();
        let events = bodies.into_iter().map(event).collect();
        self.bus.publish(&topic, events).await.unwrap().into_iter().map(Result::unwrap).collect()
    }

    /// How many messages of a queue are in a state.
    pub(crate) async fn count(&self, queue: &str, state: State) -> u64 {
        self.broker.stats(&QueueName::new(queue).unwrap()).await.unwrap().states.of(state)
    }

    /// Everything that is not over in a queue, by state.
    pub(crate) async fn left(&self, queue: &str) -> BTreeMap<&'static str, u64> {
        let stats = self.broker.stats(&QueueName::new(queue).unwrap()).await.unwrap();
        let counts = State::ALL.into_iter().map(|state| (state.name(), stats.states.of(state)));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// Lets time pass until so many milliseconds after the world began.
    pub(crate) async fn pass_to(&self, elapsed: u64) {
        self.clock.until(Timestamp::from_millis(START + elapsed)).await;
    }

    /// Lets time pass until something is so.
    pub(crate) async fn until(&self, what: &str, mut is_so: impl AsyncFnMut(&Self) -> bool) {
        const A_WEEK: u64 = 7 * 24 * 3_600 * 1_000;
        let end = self.elapsed() + A_WEEK;
        let mut step = 1;
        while !is_so(self).await {
            assert!(self.elapsed() < end, "{what}: never; seen {:?}", self.log.lock().last());
            pause(Millis::new(step)).await;
            step = (step * 2).min(1_000);
        }
    }

    /// Lets time pass until nothing of these queues is waiting or under way.
    pub(crate) async fn drained(&self, queues: &[&str]) {
        let settled = async |world: &Self| {
            for queue in queues {
                let left = world.left(queue).await;
                if left.keys().any(|state| *state != State::Dead.name()) {
                    return false;
                }
            }
            true
        };
        self.until("drained", settled).await;
    }
}

pub(crate) fn event(body: &str) -> NewEvent {
    NewEvent { body: Body::new(body.to_owned()).unwrap(), ..NewEvent::default() }
}

pub(crate) fn event_with(body: &str, headers: &[(&str, &str)]) -> NewEvent {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    NewEvent { headers: Headers::new(headers).unwrap(), ..event(body) }
}

pub(crate) fn settings(pattern: &str) -> SubscriptionSettings {
    SubscriptionSettings::new(pattern.parse().unwrap())
}

/// The same without jitter, so that times are exact.
pub(crate) fn exact(pattern: &str) -> SubscriptionSettings {
    let retry =
        RetryOverride { jitter: Some(redrive_core::policy::Jitter::None), ..RetryOverride::default() };
    SubscriptionSettings { retry, breaker: Some(None), ..settings(pattern) }
}

pub(crate) fn with_breaker(settings: SubscriptionSettings) -> SubscriptionSettings {
    SubscriptionSettings { breaker: Some(Some(BreakerConfig::default())), ..settings }
}

pub(crate) fn boom(_: &Seen) -> Result<(), HandlerFailure> {
    fail("boom")
}

pub(crate) fn fail(error: &str) -> Result<(), HandlerFailure> {
    Err(HandlerFailure::Retry { error: error.to_owned(), after: None })
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of an answer")]
pub(crate) fn fine(_: &Seen) -> Result<(), HandlerFailure> {
    Ok(())
}
