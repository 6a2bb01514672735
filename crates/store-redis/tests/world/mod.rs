//! A store on a server, and its verbs in a few words each.

#![allow(dead_code, reason = "of the tests that share it, each uses a part")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::{Draft, When};
use redrive_core::message::{
    Body, ContentType, FairnessKey, Headers, Message, MessageId, MessageType, Priority, Source, Spec,
};
use redrive_core::policy::{Jitter, RetryOverride};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::receipt::Claim;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    AckItem, Acked, Batch, CreateQueue, EnqueueItem, EnqueueOutcome, LeaseRequest, Leased, Limit, Now,
    QueueError, QueueStats, RetryAdvice, Settled, Store, StoreError,
};
use redrive_store_redis::{Durability, Options, Patience, RedisStore};

/// How long a test waits for what must come.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

static IDS: AtomicU64 = AtomicU64::new(0);

/// A store with a queue.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) store: Arc<RedisStore>,
    pub(crate) queue: QueueName,
}

pub(crate) fn queue_name(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

/// A configuration without chance, delay or cap.
pub(crate) fn patient() -> QueueConfig {
    let retry = RetryOverride {
        max_attempts: Some(None),
        base_delay: Some(Millis::ZERO),
        jitter: Some(Jitter::None),
        ..RetryOverride::default()
    };
    QueueConfig { retry, ..QueueConfig::default() }
}

/// Options for a server that keeps what it was told for as long as its process lives.
pub(crate) fn options(url: &str) -> Options {
    Options { durability: Durability::Any, ..Options::new(url) }
}

/// Options of somebody who would rather hear soon that there is no answer.
pub(crate) fn hasty(url: &str) -> Options {
    let patience = Patience { busy: Duration::from_millis(200), ..Patience::default() };
    Options { patience, ..options(url) }
}

impl World {
    pub(crate) async fn open(options: Options) -> Self {
        let world = Self::beside(options).await;
        world.create(&world.queue, patient()).await;
        world
    }

    /// Another instance where there is one already.
    pub(crate) async fn beside(options: Options) -> Self {
        let store = Arc::new(RedisStore::open(options, [7; 32]).await.unwrap());
        Self { store, queue: queue_name("work") }
    }

    pub(crate) async fn create(&self, name: &QueueName, config: QueueConfig) {
        let request = CreateQueue { name: name.clone(), config };
        self.store.create_queue(Now::Store, request).await.unwrap();
    }

    pub(crate) fn draft() -> Draft {
        let id = IDS.fetch_add(1, Ordering::Relaxed) + 1;
        let spec = Spec {
            id: MessageId::new(Timestamp::from_millis(1_800_000_000_000), u128::from(id) << 8),
            body: Body::new(format!("body {id}")).unwrap(),
            content_type: ContentType::default(),
            headers: Headers::default(),
            kind: MessageType::default(),
            source: Source::default(),
            fairness_key: FairnessKey::default(),
            dedup: None,
            lease_timeout: None,
            max_attempts: None,
        };
        Draft { spec, priority: Priority::default(), visible: When::Now, expires: None }
    }

    pub(crate) async fn send(&self, drafts: Vec<Draft>) -> Result<Vec<EnqueueOutcome>, StoreError> {
        let items = drafts.into_iter().map(|draft| EnqueueItem { queue: self.queue.clone(), draft });
        self.store.enqueue(Now::Store, Batch::each(items.collect()).unwrap()).await
    }

    /// Enqueues messages, and answers their ids.
    pub(crate) async fn put(&self, count: usize) -> Vec<MessageId> {
        let drafts: Vec<Draft> = (0..count).map(|_| Self::draft()).collect();
        let ids = drafts.iter().map(|draft| draft.spec.id).collect();
        let outcomes = self.send(drafts).await.unwrap();
        let new = |outcome: &EnqueueOutcome| matches!(outcome, EnqueueOutcome::Enqueued { .. });
        assert!(outcomes.iter().all(new), "{outcomes:?}");
        ids
    }

    pub(crate) async fn take(&self, limit: usize, lease: Millis) -> Result<Leased, QueueError> {
        let (consumer, limit) = (ConsumerName::new("test").unwrap(), Limit::new(limit).unwrap());
        let request = LeaseRequest::new(self.queue.clone(), limit, consumer, 1);
        self.store.lease(Now::Store, LeaseRequest { time: Some(lease), ..request }).await
    }

    /// Leases for as long as no test takes.
    pub(crate) async fn lease(&self, limit: usize) -> Vec<Message> {
        self.take(limit, Millis::from_secs(3_600)).await.unwrap().messages
    }

    pub(crate) async fn ack(&self, messages: &[Message]) -> Result<Vec<Settled<Acked>>, StoreError> {
        let claims = messages.iter().map(|message| Claim::on(message).expect("it is leased"));
        let items = claims.map(|claim| AckItem { claim }).collect();
        self.store.ack(Now::Store, Batch::each(items).unwrap()).await
    }

    pub(crate) async fn stats(&self) -> QueueStats {
        self.store.stats(Now::Store, &self.queue).await.unwrap()
    }
}

/// Does it until it works; what is refused for another reason than a server that is away is a failure of the test.
pub(crate) async fn until_it_works<T, F: Future<Output = Result<T, StoreError>>>(
    mut call: impl FnMut() -> F,
) -> T {
    let tried = async {
        loop {
            match call().await {
                Ok(answer) => return answer,
                Err(error) => assert_ne!(error.advice(), RetryAdvice::GiveUp, "{error}"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, tried).await.expect("it works again in the end")
}
