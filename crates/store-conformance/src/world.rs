//! What a rule works with: a store, a clock that only the rule moves, and the verbs in a few words each.

use std::sync::Arc;

use redrive_core::dice::Dice;
use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::{Draft, When};
use redrive_core::message::{
    Body, Checkpoint, ContentType, DeadReason, Dedup, DedupKey, ErrorText, FairnessKey, Headers, Message,
    MessageId, MessageType, Note, Priority, Source, Spec, State, Uniqueness,
};
use redrive_core::policy::{Asked, Jitter, RetryOverride};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::receipt::Claim;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    AckItem, Acked, Batch, Bulk, BuryItem, CreateQueue, EnqueueItem, EnqueueOutcome, ExpireRequest,
    ExtendItem, Filter, Judged, LeaseRequest, LeaseTarget, Leased, Limit, NackItem, Now, Pick, QueueStats,
    ReleaseItem, Released, Selection, Settled, Store, SweepRequest, UpdateQueue,
};

use crate::check;
use crate::subject::Instance;

/// Calls after which a lease that always promises more counts as never answered.
const CALLS_MAX: usize = 1_000;

/// A store, a clock and a source of ids, all under the rule's control.
pub(crate) struct World {
    instance: Option<Box<dyn Instance>>,
    store: Arc<dyn Store>,
    clock: Timestamp,
    dice: Dice,
    ids: u64,
}

impl World {
    pub(crate) fn new(instance: Box<dyn Instance>) -> Self {
        let store = instance.store();
        let clock = Timestamp::from_millis(1_800_000_000_000);
        Self { instance: Some(instance), store, clock, dice: Dice::seeded(1), ids: 0 }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// The time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock
    }

    /// The time, as a call takes it.
    pub(crate) fn at(&self) -> Now {
        Now::At(self.clock)
    }

    pub(crate) fn advance(&mut self, ms: u64) {
        self.clock = self.clock.plus(Millis::new(ms));
    }

    pub(crate) fn set_clock(&mut self, to: Timestamp) {
        self.clock = to;
    }

    pub(crate) fn seed(&mut self) -> u64 {
        self.dice.roll()
    }

    /// As many doors to the same data: instances of their own where there can be several, else the same one.
    pub(crate) async fn doors(&self, count: usize) -> Vec<Arc<dyn Store>> {
        let instance = self.instance.as_ref().expect("an instance is always put back");
        let mut doors = Vec::with_capacity(count);
        for _ in 0..count {
            doors.push(instance.another().await.unwrap_or_else(|| Arc::clone(&self.store)));
        }
        doors
    }

    /// Ends the process and starts another.
    pub(crate) async fn restart(&mut self) {
        let instance = self.instance.take().expect("an instance is always put back");
        let instance = instance.restart(self.clock).await;
        self.store = instance.store();
        self.instance = Some(instance);
    }

    // Queues.

    /// A queue whose retries are immediate and endless unless the rule says otherwise.
    pub(crate) async fn queue(&mut self, name: &str) -> QueueName {
        self.queue_with(name, |_| ()).await
    }

    pub(crate) async fn queue_with(&mut self, name: &str, set: impl FnOnce(&mut QueueConfig)) -> QueueName {
        let name = QueueName::new(name).expect("a good name");
        let mut config = patient();
        set(&mut config);
        let request = CreateQueue { name: name.clone(), config };
        self.store().create_queue(self.at(), request).await.expect("the queue is created");
        name
    }

    pub(crate) async fn update(&mut self, queue: &QueueName, set: impl FnOnce(&mut QueueConfig)) {
        let mut config = self.stats(queue).await.queue.config;
        set(&mut config);
        let request = UpdateQueue { name: queue.clone(), config, expected: None };
        self.store().update_queue(self.at(), request).await.expect("the queue is updated");
    }

    // Enqueue.

    pub(crate) fn draft(&mut self) -> Draft {
        self.ids += 1;
        let id = MessageId::new(self.clock, u128::from(self.ids) << 8);
        let spec = Spec {
            id,
            body: Body::new(format!("body {}", self.ids)).expect("a small body"),
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

    pub(crate) async fn try_put(
        &mut self,
        queue: &QueueName,
        set: impl FnOnce(&mut Draft),
    ) -> EnqueueOutcome {
        let mut draft = self.draft();
        set(&mut draft);
        let batch = Batch::one(EnqueueItem { queue: queue.clone(), draft }).expect("one message");
        let outcomes = self.store().enqueue(self.at(), batch).await.expect("the store answers");
        outcomes.into_iter().next().expect("an outcome per item")
    }

    pub(crate) async fn put_with(&mut self, queue: &QueueName, set: impl FnOnce(&mut Draft)) -> MessageId {
        match self.try_put(queue, set).await {
            EnqueueOutcome::Enqueued { id, .. } => id,
            other => panic!("not enqueued: {other:?}"),
        }
    }

    pub(crate) async fn put(&mut self, queue: &QueueName) -> MessageId {
        self.put_with(queue, |_| ()).await
    }

    /// Enqueues `count` messages in as few batches as possible.
    pub(crate) async fn put_many(
        &mut self,
        queue: &QueueName,
        count: usize,
        set: impl Fn(usize, &mut Draft),
    ) -> Vec<MessageId> {
        let mut ids = Vec::with_capacity(count);
        let drafts: Vec<EnqueueItem> = (0..count)
            .map(|n| {
                let mut draft = self.draft();
                set(n, &mut draft);
                EnqueueItem { queue: queue.clone(), draft }
            })
            .collect();
        for items in drafts.chunks(500) {
            let batch = Batch::each(items.to_vec()).expect("within the limits");
            for outcome in self.store().enqueue(self.at(), batch).await.expect("the store answers") {
                let EnqueueOutcome::Enqueued { id, .. } = outcome else {
                    panic!("not enqueued: {outcome:?}")
                };
                ids.push(id);
            }
        }
        ids
    }

    // Lease and settle.

    /// Leases up to `limit` messages, in as many calls as the store wants for that.
    pub(crate) async fn lease_with(
        &mut self,
        queue: &QueueName,
        limit: usize,
        set: impl FnOnce(&mut LeaseRequest),
    ) -> Leased {
        let seed = self.seed();
        let consumer = ConsumerName::new("consumer").expect("a good name");
        let mut request = LeaseRequest::new(queue.clone(), at_most(limit), consumer, seed);
        set(&mut request);
        let mut all = self.store().lease(self.at(), request.clone()).await.expect("the store answers");
        let mut calls = 1;
        while all.more && request.pick == Pick::Fair && all.messages.len() < limit {
            request.limit = at_most(limit - all.messages.len());
            let next = self.store().lease(self.at(), request.clone()).await.expect("the store answers");
            all.messages.extend(next.messages);
            all.swept.expired.extend(next.swept.expired);
            all.swept.lapsed.extend(next.swept.lapsed);
            all.more = next.more;
            calls += 1;
            assert!(calls < CALLS_MAX, "the store says that there is more, and does not hand it out");
        }
        all
    }

    pub(crate) async fn lease(&mut self, queue: &QueueName, limit: usize) -> Vec<Message> {
        self.lease_with(queue, limit, |_| ()).await.messages
    }

    pub(crate) async fn lease_ids(&mut self, queue: &QueueName, limit: usize) -> Vec<MessageId> {
        self.lease(queue, limit).await.iter().map(Message::id).collect()
    }

    pub(crate) async fn lease_one(&mut self, queue: &QueueName) -> Message {
        let mut messages = self.lease(queue, 1).await;
        assert_eq!(messages.len(), 1, "one message is handed out");
        messages.remove(0)
    }

    pub(crate) async fn ack(&mut self, message: &Message) -> Settled<Acked> {
        let batch = Batch::one(AckItem { claim: claim(message) }).expect("one item");
        only(self.store().ack(self.at(), batch).await.expect("the store answers"))
    }

    pub(crate) async fn nack_with(
        &mut self,
        message: &Message,
        set: impl FnOnce(&mut NackItem),
    ) -> Settled<Judged> {
        let error = ErrorText::new("it failed");
        let mut item = NackItem { claim: claim(message), asked: Asked::Nothing, error, checkpoint: None };
        set(&mut item);
        let seed = self.seed();
        let batch = Batch::one(item).expect("one item");
        only(self.store().nack(self.at(), batch, seed).await.expect("the store answers"))
    }

    pub(crate) async fn nack(&mut self, message: &Message) -> Settled<Judged> {
        self.nack_with(message, |_| ()).await
    }

    pub(crate) async fn extend_with(
        &mut self,
        target: LeaseTarget,
        ms: u64,
        checkpoint: Option<Checkpoint>,
    ) -> Settled<Timestamp> {
        let batch = Batch::one(ExtendItem { target, time: Millis::new(ms), checkpoint }).expect("one item");
        only(self.store().extend(self.at(), batch).await.expect("the store answers"))
    }

    pub(crate) async fn extend(&mut self, message: &Message, ms: u64) -> Settled<Timestamp> {
        self.extend_with(LeaseTarget::Claim(claim(message)), ms, None).await
    }

    pub(crate) async fn release_with(
        &mut self,
        target: LeaseTarget,
        delay: Option<u64>,
    ) -> Settled<Released> {
        let batch = Batch::one(ReleaseItem { target, delay: delay.map(Millis::new) }).expect("one item");
        only(self.store().release(self.at(), batch).await.expect("the store answers"))
    }

    pub(crate) async fn release(&mut self, message: &Message) -> Settled<Released> {
        self.release_with(LeaseTarget::Claim(claim(message)), None).await
    }

    pub(crate) async fn bury(&mut self, message: &Message) -> Settled<Judged> {
        let error = ErrorText::new("hopeless");
        let batch = Batch::one(BuryItem { claim: claim(message), reason: DeadReason::Buried, error });
        only(self.store().bury(self.at(), batch.expect("one item")).await.expect("the store answers"))
    }

    // Sweepers and operators.

    pub(crate) async fn expire(&mut self, queue: &QueueName) -> Vec<Judged> {
        let seed = self.seed();
        let request = ExpireRequest { queue: Some(queue.clone()), limit: Limit::MAX, error: None, seed };
        self.store().expire(self.at(), request).await.expect("the store answers")
    }

    pub(crate) async fn lapse(&mut self, queue: &QueueName) -> Vec<Judged> {
        let request = SweepRequest { queue: Some(queue.clone()), limit: Limit::MAX };
        self.store().lapse(self.at(), request).await.expect("the store answers")
    }

    pub(crate) async fn redrive(&mut self, queue: &QueueName, filter: Filter) -> Bulk {
        let (by, reason) = (note("operator"), note("fixed"));
        let selection = Selection::new(queue.clone(), filter);
        self.store().redrive(self.at(), selection, by, reason).await.expect("the store answers")
    }

    pub(crate) async fn discard(&mut self, queue: &QueueName, filter: Filter, force: bool) -> Bulk {
        let selection = Selection::new(queue.clone(), filter);
        self.store().discard(self.at(), selection, force).await.expect("the store answers")
    }

    pub(crate) async fn move_to(&mut self, queue: &QueueName, filter: Filter, target: &QueueName) -> Bulk {
        let selection = Selection::new(queue.clone(), filter);
        self.store().move_to(self.at(), selection, target.clone()).await.expect("the store answers")
    }

    /// A dead message, by way of a lease.
    pub(crate) async fn dead(&mut self, queue: &QueueName, set: impl FnOnce(&mut Draft)) -> MessageId {
        let id = self.put_with(queue, set).await;
        let leased = self.lease(queue, 1_000).await;
        for message in leased {
            let settled = if message.id() == id {
                self.bury(&message).await.is_applied()
            } else {
                self.release(&message).await.is_applied()
            };
            assert!(settled, "settled");
        }
        assert_eq!(self.state(queue, id).await, Some(State::Dead));
        id
    }

    // Looking.

    pub(crate) async fn get(&self, queue: &QueueName, id: MessageId) -> Option<Message> {
        self.store().get(queue, id).await.expect("the store answers")
    }

    pub(crate) async fn state(&self, queue: &QueueName, id: MessageId) -> Option<State> {
        self.get(queue, id).await.map(|message| message.state(self.clock))
    }

    pub(crate) async fn stats(&self, queue: &QueueName) -> QueueStats {
        self.store().stats(self.at(), queue).await.expect("the store answers")
    }

    pub(crate) async fn list(&self, queue: &QueueName, filter: Filter) -> Vec<Message> {
        check::list(self.store(), self.clock, queue, filter).await
    }

    pub(crate) async fn ids(&self, queue: &QueueName, filter: Filter) -> Vec<MessageId> {
        self.list(queue, filter).await.iter().map(Message::id).collect()
    }

    /// Counts everything both ways; every rule ends with it.
    pub(crate) async fn audit(&self) {
        check::audit(self.store(), self.clock).await;
        self.instance.as_ref().expect("an instance is always put back").audit().await;
    }
}

/// The claim of a message's current lease.
pub(crate) fn claim(message: &Message) -> Claim {
    Claim::on(message).expect("the message is leased")
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

/// At most so many.
pub(crate) fn at_most(items: usize) -> Limit {
    Limit::new(items).expect("a limit of 1 to 1,000")
}

pub(crate) fn key(text: &str) -> FairnessKey {
    FairnessKey::new(text).expect("a good key")
}

pub(crate) fn kind(text: &str) -> MessageType {
    MessageType::new(text).expect("a good type")
}

pub(crate) fn source(text: &str) -> Source {
    Source::new(text).expect("a good source")
}

pub(crate) fn note(text: &str) -> Note {
    Note::new(text).expect("a good note")
}

pub(crate) fn priority(level: u8) -> Priority {
    Priority::new(level).expect("a good priority")
}

#[expect(clippy::unnecessary_wraps, reason = "what a draft takes is an option")]
pub(crate) fn dedup(text: &str, unique: Uniqueness) -> Option<Dedup> {
    Some(Dedup { key: DedupKey::new(text).expect("a good key"), unique })
}

pub(crate) fn after(ms: u64) -> When {
    When::After(Millis::new(ms))
}

fn only<T>(outcomes: Vec<T>) -> T {
    assert_eq!(outcomes.len(), 1, "an outcome per item");
    outcomes.into_iter().next().expect("just counted")
}
