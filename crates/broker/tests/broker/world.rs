//! A broker with one queue over the reference store, and a clock that the test moves.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use redrive_broker::{
    Background, Broker, BrokerConfig, BrokerError, Delivery, LeaseCall, ManualClock, Nack, NewMessage, Told,
    Watch,
};
use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::{Draft, When};
use redrive_core::message::{
    Body, ContentType, ErrorText, FairnessKey, Headers, MessageId, MessageType, Priority, Source, Spec, State,
};
use redrive_core::policy::{Asked, Jitter, RetryOverride};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::receipt::ReceiptKey;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{CreateQueue, EnqueueOutcome, Limit, QueueError};
use redrive_store_memory::{MemoryStore, Options};
use tokio::task::JoinHandle;

/// Longer than any test takes: a poll that waits for this long has failed.
pub(crate) const PATIENCE: Millis = Millis::from_secs(60);

pub(crate) struct World {
    pub(crate) broker: Broker,
    pub(crate) _background: Background,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) queue: QueueName,
}

impl World {
    pub(crate) async fn with(config: QueueConfig) -> Self {
        Self::over(Self::store(), config).await
    }

    pub(crate) fn store() -> Arc<MemoryStore> {
        Arc::new(MemoryStore::new(Options::new(ReceiptKey::new([7; 32]))))
    }

    pub(crate) async fn over(store: Arc<MemoryStore>, config: QueueConfig) -> Self {
        Self::set(store, config, BrokerConfig::default()).await
    }

    pub(crate) async fn set(store: Arc<MemoryStore>, config: QueueConfig, settings: BrokerConfig) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_000_000)));
        let settings = BrokerConfig { poll_wait_max: PATIENCE, ..settings };
        let (broker, background) =
            Broker::start(Arc::<MemoryStore>::clone(&store), Arc::<ManualClock>::clone(&clock), settings)
                .await
                .unwrap();
        let queue = QueueName::new("orders").unwrap();
        let created = broker.create_queue(CreateQueue { name: queue.clone(), config }).await;
        assert!(matches!(created, Ok(_) | Err(BrokerError::Queue(QueueError::AlreadyExists(_)))));
        Self { broker, _background: background, clock, store, queue }
    }

    pub(crate) async fn new() -> Self {
        Self::with(QueueConfig::default()).await
    }

    pub(crate) fn message(&self) -> NewMessage {
        let spec = Spec {
            id: MessageId::MIN,
            body: Body::new("work").unwrap(),
            content_type: ContentType::default(),
            headers: Headers::default(),
            kind: MessageType::new("invoice.paid").unwrap(),
            source: Source::new("shop").unwrap(),
            fairness_key: FairnessKey::default(),
            dedup: None,
            lease_timeout: None,
            max_attempts: None,
        };
        let draft = Draft { spec, priority: Priority::default(), visible: When::Now, expires: None };
        NewMessage { queue: self.queue.clone(), id: None, draft, idempotency_key: None, request: None }
    }

    pub(crate) async fn put_one(&self, change: impl FnOnce(&mut NewMessage)) -> MessageId {
        let mut message = self.message();
        change(&mut message);
        match self.broker.enqueue(vec![message], false).await.unwrap().remove(0).unwrap() {
            EnqueueOutcome::Enqueued { id, .. } => id,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn put(&self, count: usize) {
        let messages = (0..count).map(|_| self.message()).collect();
        for outcome in self.broker.enqueue(messages, false).await.unwrap() {
            assert!(matches!(outcome.unwrap(), EnqueueOutcome::Enqueued { .. }));
        }
    }

    pub(crate) fn call(&self, limit: usize) -> LeaseCall {
        LeaseCall::new(self.queue.clone(), Limit::new(limit).unwrap(), ConsumerName::default())
    }

    pub(crate) async fn lease(&self, limit: usize) -> Vec<Delivery> {
        self.broker.lease(self.call(limit)).await.unwrap()
    }

    /// A poll that waits; it is parked when this returns.
    pub(crate) async fn poll(&self, call: LeaseCall) -> JoinHandle<Result<Vec<Delivery>, BrokerError>> {
        let before = self.parked().await;
        let broker = self.broker.clone();
        let poll = tokio::spawn(async move { broker.lease(LeaseCall { wait: PATIENCE, ..call }).await });
        while self.parked().await == before {
            tokio::task::yield_now().await;
        }
        // It has joined; let it look once and fall asleep.
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        assert!(!poll.is_finished());
        poll
    }

    pub(crate) async fn parked(&self) -> String {
        let text = self.broker.metrics_text().await.unwrap();
        text.lines().find(|line| line.starts_with("redrive_waiting_polls ")).unwrap().to_owned()
    }

    pub(crate) async fn nack(&self, delivery: &Delivery) {
        let nack = Nack {
            receipt: delivery.receipt.clone(),
            asked: Asked::Nothing,
            error: ErrorText::new("boom"),
            checkpoint: None,
        };
        assert_eq!(self.broker.nack(vec![nack]).await.unwrap()[0].code(), None);
    }

    pub(crate) async fn ack(&self, delivery: &Delivery) {
        assert_eq!(self.broker.ack(vec![delivery.receipt.clone()]).await.unwrap()[0].code(), None);
    }

    pub(crate) async fn states(&self) -> (u64, u64, u64, u64) {
        let states = self.broker.stats(&self.queue).await.unwrap().states;
        let of = |state| states.of(state);
        (of(State::Ready), of(State::Delayed), of(State::Leased), of(State::Dead))
    }

    pub(crate) async fn until_states(&self, wanted: (u64, u64, u64, u64)) {
        let mut seen = self.states().await;
        while seen != wanted {
            tokio::task::yield_now().await;
            seen = self.states().await;
        }
    }
}

pub(crate) async fn done(poll: JoinHandle<Result<Vec<Delivery>, BrokerError>>) -> Vec<Delivery> {
    let answer = tokio::time::timeout(Duration::from_secs(30), poll).await;
    answer.expect("the poll was not woken").unwrap().unwrap()
}

/// The next event of that kind.
pub(crate) async fn event(watch: &mut Watch, name: &str) -> Arc<redrive_broker::Event> {
    loop {
        let told = tokio::time::timeout(Duration::from_secs(30), watch.next()).await;
        match told.expect("no such event came") {
            Told::Event(event) if event.what.name() == name => return event,
            Told::Event(_) => {}
            Told::Lagged(_) => panic!("events were missed"),
        }
    }
}

pub(crate) fn retry(base: Millis, max_attempts: u32) -> QueueConfig {
    let retry = RetryOverride {
        max_attempts: Some(NonZeroU32::new(max_attempts)),
        base_delay: Some(base),
        jitter: Some(Jitter::None),
        ..RetryOverride::default()
    };
    QueueConfig { retry, ..QueueConfig::default() }
}
