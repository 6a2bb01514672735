//! Who asks the engine for work: one caller, who waits for each answer before the next call.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;
use futures::future::join_all;
use redrive_core::dice::Dice;
use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::{Draft, When};
use redrive_core::limits::{BATCH_ITEMS_MAX, DEDUP_WINDOW_MAX};
use redrive_core::message::{
    Body, ContentType, DeadReason, ErrorText, FairnessKey, Headers, Lane, Message, MessageId, MessageType,
    Priority, Source, Spec,
};
use redrive_core::policy::{Asked, Jitter, RetryOverride};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::receipt::Claim;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    AckItem, Batch, BuryItem, CreateQueue, EnqueueItem, EnqueueOutcome, Item, LaneChoice, LeaseRequest,
    Limit, NackItem, Now, Settled, Store,
};
use redrive_store_embedded::{EmbeddedStore, Options, Usage};

use crate::bare::random;
use crate::progress::Progress;
use crate::scale::Scale;

/// Bodies are slices of one buffer of this size: larger than the caches that a body would stay in.
const BODIES_BYTES: usize = 8 << 20;

/// The store's own clock, as a server that runs it uses it.
const NOW: Now = Now::Store;

/// How many messages a load hands over at a time.
const LOAD_BATCH: u64 = 1_000;

/// One caller of a store, with one queue.
#[derive(Debug)]
pub(crate) struct Caller {
    store: Arc<EmbeddedStore>,
    queue: QueueName,
    template: Spec,
    bodies: Bytes,
    body_bytes: usize,
    made: u64,
    dice: Dice,
}

/// What the bench opens a store with.
pub(crate) fn options(scale: Scale) -> Options {
    let mut options = Options { segment_bytes: scale.segment_bytes, ..Options::default() };
    options.limits.dedup_keys_per_queue = usize::MAX;
    options
}

impl Caller {
    /// Opens a new store and makes a queue whose retries are immediate and endless.
    pub(crate) fn open(dir: &Path, scale: Scale, body_bytes: usize) -> Self {
        let store = EmbeddedStore::open(dir, options(scale)).expect("a new store opens");
        let queue = QueueName::new("bench").expect("a good name");
        let request = CreateQueue { name: queue.clone(), config: config() };
        block_on(store.create_queue(NOW, request)).expect("the queue is created");
        Self {
            store: Arc::new(store),
            queue,
            template: spec(),
            bodies: Bytes::from(random(BODIES_BYTES)),
            body_bytes,
            made: 0,
            dice: Dice::seeded(1),
        }
    }

    /// Another caller of the same store and queue, whose ids are its own.
    pub(crate) fn another(&self, seed: u64) -> Self {
        Self {
            store: Arc::clone(&self.store),
            queue: self.queue.clone(),
            template: self.template.clone(),
            bodies: self.bodies.clone(),
            body_bytes: self.body_bytes,
            made: 0,
            dice: Dice::seeded(seed),
        }
    }

    /// Ends the store in good order.
    pub(crate) fn close(self) {
        let store = Arc::into_inner(self.store).expect("nobody else calls it any more");
        store.close().expect("the store closes");
    }

    pub(crate) fn usage(&self) -> Usage {
        block_on(self.store.usage()).expect("the store answers")
    }

    /// Enqueues so many messages; `set` may change the draft of the n-th that this caller makes.
    pub(crate) fn enqueue_with(&mut self, count: usize, mut set: impl FnMut(u64, &mut Draft)) {
        let calls: Vec<_> = parts(count).map(|part| self.items(part, &mut set)).collect();
        let answers = block_on(join_all(calls.into_iter().map(|items| {
            let batch = Batch::each(items).expect("within the limits");
            self.store.enqueue(NOW, batch)
        })));
        for outcomes in answers {
            for outcome in outcomes.expect("the store answers") {
                assert!(matches!(outcome, EnqueueOutcome::Enqueued { .. }), "not enqueued: {outcome:?}");
            }
        }
    }

    pub(crate) fn enqueue(&mut self, count: usize) {
        self.enqueue_with(count, |_, _| ());
    }

    /// Leases so many messages from what the queue shares out, or from one lane of it.
    pub(crate) fn lease(&mut self, count: usize, lane: LaneChoice) -> Vec<Message> {
        let consumer = ConsumerName::new("bench").expect("a good name");
        let calls: Vec<_> = parts(count)
            .map(|part| {
                let limit = Limit::new(part).expect("a part is within the limit");
                let seed = self.dice.roll();
                let request = LeaseRequest::new(self.queue.clone(), limit, consumer.clone(), seed);
                self.store.lease(NOW, LeaseRequest { lane, ..request })
            })
            .collect();
        let answers = block_on(join_all(calls)).into_iter();
        let mut messages = answers.flat_map(|leased| leased.expect("the store answers").messages);
        let mut all = Vec::with_capacity(count);
        all.extend(&mut messages);
        assert_eq!(all.len(), count, "what is ready is handed out");
        all
    }

    pub(crate) fn ack(&mut self, messages: &[Message]) {
        let calls = batches(messages, |message| AckItem { claim: claim(message) });
        let answers = block_on(join_all(calls.into_iter().map(|batch| self.store.ack(NOW, batch))));
        all_applied(answers.into_iter().map(|outcomes| outcomes.expect("the store answers")));
    }

    pub(crate) fn nack(&mut self, messages: &[Message]) {
        let error = ErrorText::new("the upstream answered 503 Service Unavailable");
        let seed = self.dice.roll();
        let calls = batches(messages, |message| NackItem {
            claim: claim(message),
            asked: Asked::Nothing,
            error: error.clone(),
            checkpoint: None,
        });
        let answers = join_all(calls.into_iter().map(|batch| self.store.nack(NOW, batch, seed)));
        all_applied(block_on(answers).into_iter().map(|outcomes| outcomes.expect("the store answers")));
    }

    pub(crate) fn bury(&mut self, messages: &[Message]) {
        let error = ErrorText::new("the upstream answered 410 Gone");
        let calls = batches(messages, |message| BuryItem {
            claim: claim(message),
            reason: DeadReason::Buried,
            error: error.clone(),
        });
        let answers = block_on(join_all(calls.into_iter().map(|batch| self.store.bury(NOW, batch))));
        all_applied(answers.into_iter().map(|outcomes| outcomes.expect("the store answers")));
    }

    /// enqueue, lease, ack.
    pub(crate) fn life_cycle(&mut self, batch: usize) {
        self.enqueue(batch);
        let messages = self.lease(batch, LaneChoice::Queue);
        self.ack(&messages);
    }

    /// enqueue, lease, nack, lease, ack. Each lease asks for one lane, or a fifth of the second would be fresh.
    pub(crate) fn retry_cycle(&mut self, batch: usize) {
        self.enqueue(batch);
        let failed = self.lease(batch, LaneChoice::Only(Lane::Fresh));
        self.nack(&failed);
        drop(failed);
        let messages = self.lease(batch, LaneChoice::Only(Lane::Retry));
        self.ack(&messages);
    }

    /// Puts so many messages into the queue and leaves them there.
    pub(crate) fn load(&mut self, what: &str, count: u64, mut set: impl FnMut(u64, &mut Draft)) {
        in_batches(what, count, |part| self.enqueue_with(part, &mut set));
    }

    /// Puts so many messages into the queue that may not be leased for a day.
    pub(crate) fn load_delayed(&mut self, count: u64) {
        self.load("delayed messages", count, |_, draft| draft.visible = When::After(Millis::from_days(1)));
    }

    /// Makes so many messages dead, each by way of a lease. The queue must have nothing else that is ready.
    pub(crate) fn load_dead(&mut self, count: u64) {
        in_batches("dead messages", count, |part| {
            self.enqueue(part);
            let messages = self.lease(part, LaneChoice::Queue);
            self.bury(&messages);
        });
    }

    /// What a caller of the engine does by itself: makes items and drops them. For the table, not for a bar.
    pub(crate) fn only_make(&mut self, count: usize) {
        for part in parts(count) {
            drop(std::hint::black_box(self.items(part, &mut |_, _| ())));
        }
    }

    fn items(&mut self, count: usize, set: &mut impl FnMut(u64, &mut Draft)) -> Vec<EnqueueItem> {
        (0..count)
            .map(|_| {
                let mut draft = self.draft();
                set(self.made - 1, &mut draft);
                EnqueueItem { queue: self.queue.clone(), draft }
            })
            .collect()
    }

    fn draft(&mut self) -> Draft {
        // As ids of a producer are: the time in front, chance behind.
        let at = Timestamp::from_millis(1_800_000_000_000 + self.made / 100);
        let id = MessageId::new(at, u128::from(self.dice.roll()) << 10 | u128::from(self.made & 0x3FF));
        let body = Body::new(self.body()).expect("within the limit");
        self.made += 1;
        Draft {
            spec: Spec { id, body, ..self.template.clone() },
            priority: Priority::default(),
            visible: When::Now,
            expires: None,
        }
    }

    fn body(&self) -> Bytes {
        let slots = self.bodies.len() / self.body_bytes.max(1);
        let slot = usize::try_from(self.made).unwrap_or(0) % slots;
        self.bodies.slice(slot * self.body_bytes..(slot + 1) * self.body_bytes)
    }
}

/// How a number of items is shared out among calls, none of which may carry more than a batch may: all at the same
/// time, so that the store may take them into one frame.
fn parts(count: usize) -> impl Iterator<Item = usize> {
    let calls = count.div_ceil(BATCH_ITEMS_MAX).max(1);
    (0..calls).map(move |call| count * (call + 1) / calls - count * call / calls)
}

fn batches<T: Item>(messages: &[Message], mut item: impl FnMut(&Message) -> T) -> Vec<Batch<T>> {
    let mut rest = messages;
    parts(messages.len())
        .map(|part| {
            let (now, later) = rest.split_at(part);
            rest = later;
            Batch::each(now.iter().map(&mut item).collect()).expect("within the limits")
        })
        .collect()
}

fn all_applied<T>(answers: impl Iterator<Item = Vec<Settled<T>>>) {
    for outcomes in answers {
        assert!(outcomes.iter().all(Settled::is_applied), "a lease of ours was lost");
    }
}

fn in_batches(what: &str, count: u64, mut work: impl FnMut(usize)) {
    let mut progress = Progress::new(format!("loading {count} {what}"));
    let mut done = 0;
    while done < count {
        let part = LOAD_BATCH.min(count - done);
        work(usize::try_from(part).expect("a batch is small"));
        done += part;
        progress.at(|| format!("{done}"));
    }
}

fn claim(message: &Message) -> Claim {
    Claim::on(message).expect("what was leased has a lease")
}

/// No delay, no cap and no chance; dedup keys that outlast the run.
fn config() -> QueueConfig {
    let retry = RetryOverride {
        max_attempts: Some(None),
        base_delay: Some(Millis::ZERO),
        jitter: Some(Jitter::None),
        ..RetryOverride::default()
    };
    QueueConfig { retry, dedup_window: Some(DEDUP_WINDOW_MAX), ..QueueConfig::default() }
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
