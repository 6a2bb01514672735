//! Who calls the store: one caller, who waits for each answer before the next call.

use std::sync::Arc;

use bytes::Bytes;
use redrive_core::dice::Dice;
use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::{Draft, When};
use redrive_core::message::{
    Body, ContentType, FairnessKey, Headers, Message, MessageId, MessageType, Priority, Source, Spec,
};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::receipt::Claim;
use redrive_core::time::Timestamp;
use redrive_store::{
    AckItem, Batch, CreateQueue, EnqueueItem, EnqueueOutcome, LeaseRequest, Limit, Now, Settled, Store,
};

use crate::machine::{BenchStore, Server};
use crate::progress::Progress;

/// Bodies are slices of one buffer of this size: larger than the caches that a body would stay in.
const BODIES_BYTES: usize = 8 << 20;
/// How many messages a load hands over at a time.
const LOAD_BATCH: u64 = 1_000;

/// Bodies that nobody could compress.
#[derive(Debug, Clone)]
pub(crate) struct Bodies {
    bytes: Bytes,
    each: usize,
    made: usize,
}

impl Bodies {
    pub(crate) fn new(each: usize) -> Self {
        let mut dice = Dice::seeded(7);
        let bytes: Vec<u8> = (0..BODIES_BYTES / 8).flat_map(|_| dice.roll().to_le_bytes()).collect();
        Self { bytes: Bytes::from(bytes), each, made: 0 }
    }

    pub(crate) fn next(&mut self) -> Bytes {
        let slot = self.made % (self.bytes.len() / self.each);
        self.made += 1;
        self.bytes.slice(slot * self.each..(slot + 1) * self.each)
    }

    pub(crate) fn batch(&mut self, count: usize) -> Vec<Bytes> {
        (0..count).map(|_| self.next()).collect()
    }
}

/// One caller of a store, with one queue.
#[derive(Debug)]
pub(crate) struct Caller {
    store: Arc<BenchStore>,
    queue: QueueName,
    template: Spec,
    consumer: ConsumerName,
    bodies: Bodies,
    made: u64,
    dice: Dice,
}

impl Caller {
    /// Opens a store of that name, empty, and makes a queue in it.
    pub(crate) async fn open(server: &Server, name: &str, connections: usize, body_bytes: usize) -> Self {
        let store = server.open_store(name, connections).await;
        let queue = QueueName::new("bench").expect("a good name");
        let request = CreateQueue { name: queue.clone(), config: QueueConfig::default() };
        store.create_queue(Now::Store, request).await.expect("the queue is created");
        Self {
            store: Arc::new(store),
            queue,
            template: spec(),
            consumer: ConsumerName::new("bench").expect("a good name"),
            bodies: Bodies::new(body_bytes),
            made: 0,
            dice: Dice::seeded(1),
        }
    }

    /// Another caller of the same store and queue, whose ids and whose name are its own.
    pub(crate) fn another(&self, seed: u64) -> Self {
        Self {
            store: Arc::clone(&self.store),
            queue: self.queue.clone(),
            template: self.template.clone(),
            consumer: ConsumerName::new(format!("bench-{seed}")).expect("a good name"),
            bodies: self.bodies.clone(),
            made: 0,
            dice: Dice::seeded(seed + 2),
        }
    }

    /// So many of them.
    pub(crate) fn others(&self, count: u64) -> Vec<Self> {
        (0..count).map(|seed| self.another(seed)).collect()
    }

    pub(crate) fn close(&self) {
        crate::machine::close(&self.store);
    }

    /// Enqueues so many messages; `set` may change the draft of the n-th that this caller makes.
    pub(crate) async fn enqueue_with(&mut self, count: usize, mut set: impl FnMut(u64, &mut Draft)) {
        let items = (0..count).map(|_| {
            let mut draft = self.draft();
            set(self.made - 1, &mut draft);
            EnqueueItem { queue: self.queue.clone(), draft }
        });
        let batch = Batch::each(items.collect()).expect("within the limits");
        for outcome in self.store.enqueue(Now::Store, batch).await.expect("the store answers") {
            assert!(matches!(outcome, EnqueueOutcome::Enqueued { .. }), "not enqueued: {outcome:?}");
        }
    }

    pub(crate) async fn enqueue(&mut self, count: usize) {
        self.enqueue_with(count, |_, _| ()).await;
    }

    /// Leases so many messages. Where callers are in each other's way some come later.
    async fn lease(&mut self, count: usize) -> Vec<Message> {
        let mut all: Vec<Message> = Vec::with_capacity(count);
        while all.len() < count {
            let limit = Limit::new(count - all.len()).expect("a batch is within the limit");
            let seed = self.dice.roll();
            let request = LeaseRequest::new(self.queue.clone(), limit, self.consumer.clone(), seed);
            let leased = self.store.lease(Now::Store, request).await.expect("the store answers");
            assert!(!leased.messages.is_empty() || leased.more, "what is ready is handed out");
            all.extend(leased.messages);
        }
        all
    }

    async fn ack(&mut self, messages: &[Message]) {
        let claim = |message| Claim::on(message).expect("what was leased has a lease");
        let items = messages.iter().map(|message| AckItem { claim: claim(message) }).collect();
        let batch = Batch::each(items).expect("within the limits");
        let outcomes = self.store.ack(Now::Store, batch).await.expect("the store answers");
        assert!(outcomes.iter().all(Settled::is_applied), "a lease of ours was lost");
    }

    /// enqueue, lease, ack.
    pub(crate) async fn life_cycle(&mut self, batch: usize) {
        self.life_cycle_with(batch, |_, _| ()).await;
    }

    pub(crate) async fn life_cycle_with(&mut self, batch: usize, set: impl FnMut(u64, &mut Draft)) {
        self.enqueue_with(batch, set).await;
        let messages = self.lease(batch).await;
        self.ack(&messages).await;
    }

    /// Puts so many messages into the queue and leaves them there.
    pub(crate) async fn load(&mut self, count: u64, mut set: impl FnMut(u64, &mut Draft)) {
        let mut progress = Progress::new(format!("loading {count} messages"));
        let mut done = 0;
        while done < count {
            let part = LOAD_BATCH.min(count - done);
            self.enqueue_with(usize::try_from(part).expect("a batch is small"), &mut set).await;
            done += part;
            progress.at(|| format!("{done}"));
        }
    }

    fn draft(&mut self) -> Draft {
        // As ids of a producer are: the time in front, chance behind.
        let at = Timestamp::from_millis(1_800_000_000_000 + self.made / 100);
        let id = MessageId::new(at, u128::from(self.dice.roll()) << 10 | u128::from(self.made & 0x3FF));
        let body = Body::new(self.bodies.next()).expect("within the limit");
        self.made += 1;
        Draft {
            spec: Spec { id, body, ..self.template.clone() },
            priority: Priority::default(),
            visible: When::Now,
            expires: None,
        }
    }
}

fn spec() -> Spec {
    Spec {
        id: MessageId::MIN,
        body: Body::default(),
        content_type: ContentType::default(),
        headers: Headers::default(),
        kind: MessageType::new("invoice.paid").expect("a good type"),
        source: Source::new("bench").expect("a good source"),
        fairness_key: FairnessKey::default(),
        dedup: None,
        lease_timeout: None,
        max_attempts: None,
    }
}
