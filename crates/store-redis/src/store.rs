//! The store: every verb, tried again where the server could not answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use redis::Value;
use redrive_core::lifecycle::Reschedule;
use redrive_core::message::{Message, MessageId, Note};
use redrive_core::queue::{Queue, QueueName};
use redrive_core::receipt::ReceiptKey;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    AckItem, Acked, Append, Batch, Bulk, BuryItem, Capabilities, CountBy, Counts, CreateQueue, DeleteQueue,
    EnqueueItem, EnqueueOutcome, Entry, EntryKey, EntryKind, EntryName, ExpireRequest, ExtendItem,
    FailureGroup, Judged, KnownClock, LeaseRequest, Leased, Limit, ListRequest, Listener, LockClaim, LogName,
    LogRange, LogRecord, NackItem, NextDue, Now, Page, PauseQueue, QueueError, QueueStats, ReleaseItem,
    Released, Selection, Settled, Signal, Store, StoreError, SweepRequest, UpdateQueue, WriteOutcome, Writes,
};
use redrive_store_shared::{Alone, Joints};

use crate::clock::{StoreClock, uptime};
use crate::error::{Fault, damaged, store_error, unavailable};
use crate::link::{Args, Link};
use crate::options::{Address, Options};
use crate::queue::Known;
use crate::reply::{self, Reply};
use crate::signal::Ear;

/// How often a queue is looked at anew because it was changed while a script was on its way.
pub(crate) const LOOKS: usize = 20;

/// The same queue on Redis. Any number of instances may be open on one server or cluster.
#[derive(Debug)]
pub struct RedisStore(Arc<Shared>);

/// What all calls share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) link: Arc<Link>,
    pub(crate) options: Options,
    receipt_key: ReceiptKey,
    /// What is known of the server's clock.
    pub(crate) known_clock: KnownClock,
    /// What this instance is called among the others.
    pub(crate) name: String,
    cache: Mutex<HashMap<QueueName, Arc<Known>>>,
    joints: Joints,
    tokens: AtomicU64,
    /// The latest time that a caller has named; time never runs back.
    floor: AtomicU64,
}

impl Shared {
    /// The time of a call, as scripts take it.
    pub(crate) fn time_arg(&self, now: Now) -> String {
        match now {
            Now::At(at) => self.no_earlier(at).as_millis().to_string(),
            Now::Store => String::new(),
        }
    }

    pub(crate) fn no_earlier(&self, at: Timestamp) -> Timestamp {
        let before = self.floor.fetch_max(at.as_millis(), Ordering::AcqRel);
        at.max(Timestamp::from_millis(before))
    }

    pub(crate) fn cache(&self) -> MutexGuard<'_, HashMap<QueueName, Arc<Known>>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A token that no other lock has.
    pub(crate) fn token(&self) -> String {
        format!("{}:{}", self.name, self.tokens.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn backend(&self) -> &'static str {
        if self.link.cluster { "redis-cluster" } else { "redis" }
    }

    /// The time of a call in a queue, where it never runs back.
    pub(crate) async fn queue_clock(&self, now: Now, known: &Known) -> Result<Timestamp, Fault> {
        let [record, _] = &known.keys;
        let floor = self.link.send(record, redis::cmd("HGET").arg(record).arg("floor"), false).await?;
        let floor = if floor == Value::Nil { 0 } else { reply::number(floor)? };
        Ok(self.clock(now).await?.max(Timestamp::from_millis(floor)))
    }

    async fn queue_call<T, F>(&self, step: impl FnMut() -> F) -> Result<T, QueueError>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        self.link.again(step).await.map_err(QueueError::from)
    }

    async fn store_call<T, F>(&self, step: impl FnMut() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        self.link.again(step).await.map_err(store_error)
    }
}

#[async_trait]
impl Alone for Shared {
    async fn enqueue_alone(
        &self,
        now: Now,
        batch: &Batch<EnqueueItem>,
    ) -> Result<Vec<EnqueueOutcome>, StoreError> {
        self.store_call(|| self.enqueue(now, batch)).await
    }

    async fn ack_alone(&self, now: Now, batch: &Batch<AckItem>) -> Result<Vec<Settled<Acked>>, StoreError> {
        self.store_call(|| self.ack(now, batch)).await
    }

    async fn nack_alone(
        &self,
        now: Now,
        batch: &Batch<NackItem>,
        seed: u64,
    ) -> Result<Vec<Settled<Judged>>, StoreError> {
        self.store_call(|| self.nack(now, batch, seed)).await
    }

    async fn lease_alone(&self, now: Now, requests: &[LeaseRequest]) -> Result<Leased, QueueError> {
        self.queue_call(|| self.lease(now, requests)).await
    }
}

impl RedisStore {
    /// Opens the store. `fresh_key` becomes the key of receipts where the server has none yet.
    pub async fn open(options: Options, fresh_key: [u8; 32]) -> Result<Self, StoreError> {
        options.check().map_err(|wrong| StoreError::Unavailable(wrong.into()))?;
        let address = Address::parse(&options.url).map_err(|wrong| StoreError::Unavailable(wrong.into()))?;
        let link = Arc::new(Link::new(&options, address));
        link.again(|| link.promised()).await.map_err(store_error)?;
        let (receipt_key, name) = link.again(|| introduce(&link, fresh_key)).await.map_err(store_error)?;
        // The last of all: nothing is to lie between the answer and the look at our own clock.
        let now = link.again(|| link.time()).await.map_err(store_error)?;
        let shared = Shared {
            link,
            options,
            receipt_key,
            known_clock: KnownClock::new(now, uptime),
            name,
            cache: Mutex::default(),
            joints: Joints::taking_turns(),
            tokens: AtomicU64::new(0),
            floor: AtomicU64::new(0),
        };
        Ok(Self(Arc::new(shared)))
    }

    /// The clock of the server, as this instance knows it.
    pub fn clock(&self) -> StoreClock {
        StoreClock(Arc::clone(&self.0))
    }
}

/// The key of receipts, and what this instance is called.
async fn introduce(link: &Link, fresh_key: [u8; 32]) -> Result<(ReceiptKey, String), Fault> {
    if link.cluster {
        link.meet_cluster().await?;
    }
    let mut args = Args::default();
    args.push(fresh_key);
    let mut answer = Reply::of(link.run(&link.scripts.introduce, &[link.keys.store()], &args).await?)?;
    if answer.text()? != "ok" {
        return Err(Fault::Again(unavailable("the record of the store is gone")));
    }
    let key: [u8; 32] = answer
        .bytes()?
        .as_ref()
        .try_into()
        .map_err(|_| damaged("the key of receipts", "it has another length"))?;
    Ok((ReceiptKey::new(key), format!("i{}", answer.number()?)))
}

#[async_trait]
impl Store for RedisStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: self.0.backend(),
            atomic_across_queues: !self.0.link.cluster,
            store_clock: true,
            shared: true,
            survives: self.0.link.survives(),
            restart_grace: Millis::ZERO,
        }
    }

    async fn receipt_key(&self) -> Result<ReceiptKey, StoreError> {
        Ok(self.0.receipt_key.clone())
    }

    async fn create_queue(&self, now: Now, request: CreateQueue) -> Result<Queue, QueueError> {
        self.0.queue_call(|| self.0.create_queue(now, &request)).await
    }

    async fn update_queue(&self, now: Now, request: UpdateQueue) -> Result<Queue, QueueError> {
        self.0.queue_call(|| self.0.update_queue(now, &request)).await
    }

    async fn delete_queue(&self, now: Now, request: DeleteQueue) -> Result<(), QueueError> {
        self.0.queue_call(|| self.0.delete_queue(now, &request)).await
    }

    async fn pause_queue(&self, now: Now, request: PauseQueue) -> Result<Queue, QueueError> {
        self.0.queue_call(|| self.0.pause_queue(now, &request)).await
    }

    async fn get_queue(&self, name: &QueueName) -> Result<Option<Queue>, StoreError> {
        self.0.store_call(|| self.0.get_queue(name)).await
    }

    async fn list_queues(&self, after: Option<&QueueName>, limit: Limit) -> Result<Vec<Queue>, StoreError> {
        self.0.store_call(|| self.0.list_queues(after, limit)).await
    }

    async fn enqueue(&self, now: Now, batch: Batch<EnqueueItem>) -> Result<Vec<EnqueueOutcome>, StoreError> {
        self.0.joints.enqueue(&self.0, now, batch).await
    }

    async fn lease(&self, now: Now, request: LeaseRequest) -> Result<Leased, QueueError> {
        self.0.joints.lease(&self.0, now, request).await
    }

    async fn extend(
        &self,
        now: Now,
        batch: Batch<ExtendItem>,
    ) -> Result<Vec<Settled<Timestamp>>, StoreError> {
        self.0.store_call(|| self.0.extend(now, &batch)).await
    }

    async fn ack(&self, now: Now, batch: Batch<AckItem>) -> Result<Vec<Settled<Acked>>, StoreError> {
        self.0.joints.ack(&self.0, now, batch).await
    }

    async fn nack(
        &self,
        now: Now,
        batch: Batch<NackItem>,
        seed: u64,
    ) -> Result<Vec<Settled<Judged>>, StoreError> {
        self.0.joints.nack(&self.0, now, batch, seed).await
    }

    async fn release(
        &self,
        now: Now,
        batch: Batch<ReleaseItem>,
    ) -> Result<Vec<Settled<Released>>, StoreError> {
        self.0.store_call(|| self.0.release(now, &batch)).await
    }

    async fn bury(&self, now: Now, batch: Batch<BuryItem>) -> Result<Vec<Settled<Judged>>, StoreError> {
        self.0.store_call(|| self.0.bury(now, &batch)).await
    }

    async fn expire(&self, now: Now, request: ExpireRequest) -> Result<Vec<Judged>, QueueError> {
        self.0.queue_call(|| self.0.expire(now, &request)).await
    }

    async fn lapse(&self, now: Now, request: SweepRequest) -> Result<Vec<Judged>, QueueError> {
        self.0.queue_call(|| self.0.lapse(now, &request)).await
    }

    async fn retain(&self, now: Now, request: SweepRequest) -> Result<u64, QueueError> {
        self.0.queue_call(|| self.0.retain(now, &request)).await
    }

    async fn reschedule(
        &self,
        now: Now,
        selection: Selection,
        change: Reschedule,
    ) -> Result<Bulk, QueueError> {
        self.0.queue_call(|| self.0.reschedule(now, &selection, change)).await
    }

    async fn move_to(&self, now: Now, selection: Selection, target: QueueName) -> Result<Bulk, QueueError> {
        self.0.queue_call(|| self.0.move_to(now, &selection, &target)).await
    }

    async fn redrive(
        &self,
        now: Now,
        selection: Selection,
        by: Note,
        reason: Note,
    ) -> Result<Bulk, QueueError> {
        self.0.queue_call(|| self.0.redrive(now, &selection, &by, &reason)).await
    }

    async fn discard(&self, now: Now, selection: Selection, force: bool) -> Result<Bulk, QueueError> {
        self.0.queue_call(|| self.0.discard(now, &selection, force)).await
    }

    async fn get(&self, queue: &QueueName, id: MessageId) -> Result<Option<Message>, StoreError> {
        self.0.store_call(|| self.0.get(queue, id)).await
    }

    async fn list(&self, now: Now, request: ListRequest) -> Result<Page, QueueError> {
        self.0.queue_call(|| self.0.list(now, &request)).await
    }

    async fn count(
        &self,
        now: Now,
        queue: &QueueName,
        by: CountBy,
        limit: Limit,
    ) -> Result<Counts, QueueError> {
        self.0.queue_call(|| self.0.count(now, queue, by, limit)).await
    }

    async fn stats(&self, now: Now, queue: &QueueName) -> Result<QueueStats, QueueError> {
        self.0.queue_call(|| self.0.stats(now, queue)).await
    }

    async fn failure_groups(&self, queue: &QueueName, limit: Limit) -> Result<Vec<FailureGroup>, QueueError> {
        self.0.queue_call(|| self.0.failure_groups(queue, limit)).await
    }

    async fn next_due(&self, now: Now, queue: Option<&QueueName>) -> Result<NextDue, QueueError> {
        self.0.queue_call(|| self.0.next_due(now, queue)).await
    }

    async fn registry_get(&self, key: &EntryKey) -> Result<Option<Entry>, StoreError> {
        self.0.store_call(|| self.0.registry_get(key)).await
    }

    async fn registry_list(
        &self,
        kind: EntryKind,
        after: Option<&EntryName>,
        limit: Limit,
    ) -> Result<Vec<Entry>, StoreError> {
        self.0.store_call(|| self.0.registry_list(kind, after, limit)).await
    }

    async fn registry_write(&self, writes: Writes) -> Result<WriteOutcome, StoreError> {
        self.0.store_call(|| self.0.registry_write(&writes)).await
    }

    async fn log_append(&self, now: Now, log: &LogName, records: Append) -> Result<Vec<u64>, StoreError> {
        self.0.store_call(|| self.0.log_append(now, log, &records)).await
    }

    async fn log_read(
        &self,
        log: &LogName,
        range: LogRange,
        limit: Limit,
    ) -> Result<Vec<LogRecord>, StoreError> {
        self.0.store_call(|| self.0.log_read(log, range, limit)).await
    }

    async fn log_trim(&self, log: &LogName, horizon: Timestamp) -> Result<u64, StoreError> {
        self.0.store_call(|| self.0.log_trim(log, horizon)).await
    }

    async fn tell(&self, signals: Vec<Signal>) -> Result<(), StoreError> {
        self.0.store_call(|| self.0.tell(&signals)).await
    }

    fn listen(&self) -> Option<Box<dyn Listener>> {
        Some(Box::new(Ear::new(Arc::clone(&self.0.link), self.0.name.clone())))
    }

    async fn hold_lock(
        &self,
        _now: Timestamp,
        claim: &LockClaim,
        lifetime: Millis,
    ) -> Result<bool, StoreError> {
        self.0.store_call(|| self.0.hold_lock(claim, lifetime)).await
    }

    async fn release_lock(&self, claim: &LockClaim) -> Result<bool, StoreError> {
        self.0.store_call(|| self.0.release_lock(claim)).await
    }
}
