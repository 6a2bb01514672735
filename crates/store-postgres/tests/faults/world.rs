//! A store on a server, and its verbs in a few words each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::{Draft, When};
use redrive_core::message::{
    Body, ContentType, Dedup, DedupKey, FairnessKey, Headers, Message, MessageId, MessageType, Priority,
    Source, Spec, Uniqueness,
};
use redrive_core::policy::{Jitter, RetryOverride};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::receipt::Claim;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    AckItem, Acked, Batch, CreateQueue, EnqueueItem, EnqueueOutcome, LeaseRequest, Leased, Limit, Now,
    QueueError, Settled, Store, StoreError,
};
use redrive_store_postgres::{Durability, Options, PostgresStore};

/// A time when every lease that a test takes has ended.
pub(crate) const LATER: Now = Now::At(Timestamp::from_millis(4_000_000_000_000));

static IDS: AtomicU64 = AtomicU64::new(0);

/// A store with a queue.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) store: Arc<PostgresStore>,
    pub(crate) queue: QueueName,
}

impl World {
    pub(crate) async fn open(options: Options) -> Self {
        Self::open_with(options, |_| ()).await
    }

    pub(crate) async fn open_with(options: Options, set: impl FnOnce(&mut QueueConfig)) -> Self {
        let world = Self::beside(options).await;
        let retry = RetryOverride {
            max_attempts: Some(None),
            base_delay: Some(Millis::ZERO),
            jitter: Some(Jitter::None),
            ..RetryOverride::default()
        };
        let mut config = QueueConfig { retry, ..QueueConfig::default() };
        set(&mut config);
        let request = CreateQueue { name: world.queue.clone(), config };
        world.store.create_queue(Now::Store, request).await.unwrap();
        world
    }

    /// Another instance where there is one already.
    pub(crate) async fn beside(options: Options) -> Self {
        // Processes are killed here, and no power is cut: the servers do without syncs.
        let options = Options { durability: Durability::Any, ..options };
        let store = Arc::new(PostgresStore::open(options, [7; 32]).await.unwrap());
        Self { store, queue: QueueName::new("work").unwrap() }
    }

    pub(crate) fn draft() -> Draft {
        let id = IDS.fetch_add(1, Ordering::Relaxed) + 1;
        let spec = Spec {
            id: MessageId::new(Timestamp::from_millis(1_800_000_000_000), u128::from(id)),
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

    /// Enqueues a message, and answers its id and whether the answer was that it is in.
    pub(crate) async fn put(&self) -> Result<MessageId, StoreError> {
        let draft = Self::draft();
        let id = draft.spec.id;
        let outcomes = self.send(vec![draft]).await?;
        assert!(
            matches!(outcomes[..], [EnqueueOutcome::Enqueued { id: told, .. }] if told == id),
            "{outcomes:?}"
        );
        Ok(id)
    }

    pub(crate) async fn take(&self, now: Now, limit: usize, lease: Millis) -> Result<Leased, QueueError> {
        let consumer = ConsumerName::new("test").unwrap();
        let limit = Limit::new(limit).unwrap();
        let request = LeaseRequest::new(self.queue.clone(), limit, consumer, 1);
        self.store.lease(now, LeaseRequest { time: Some(lease), ..request }).await
    }

    /// Leases one message, which is there.
    pub(crate) async fn take_one(&self) -> Message {
        let leased = self.take(Now::Store, 1, Millis::new(600_000)).await.unwrap();
        leased.messages.into_iter().next().expect("there is a message")
    }

    pub(crate) async fn ack(&self, claims: &[Claim]) -> Result<Vec<Settled<Acked>>, StoreError> {
        let items = claims.iter().map(|claim| AckItem { claim: claim.clone() }).collect();
        self.store.ack(Now::Store, Batch::each(items).unwrap()).await
    }

    /// How many messages there are, whatever becomes of them.
    pub(crate) async fn messages(&self) -> u64 {
        self.store.stats(Now::Store, &self.queue).await.unwrap().states.all()
    }
}

pub(crate) fn claims(messages: &[Message]) -> Vec<Claim> {
    messages.iter().map(|message| Claim::on(message).expect("it is leased")).collect()
}

/// What makes an enqueue more than one statement.
pub(crate) fn unique(key: &str) -> Dedup {
    Dedup { key: DedupKey::new(key).unwrap(), unique: Uniqueness::Window }
}
