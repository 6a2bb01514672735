//! The store: every verb, retried where somebody was in the way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use redrive_core::lifecycle::Reschedule;
use redrive_core::message::{Message, MessageId, Note};
use redrive_core::queue::{Queue, QueueName};
use redrive_core::receipt::ReceiptKey;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    AckItem, Acked, Append, Batch, Bulk, BuryItem, Capabilities, CountBy, Counts, CreateQueue, DeleteQueue,
    EnqueueItem, EnqueueOutcome, Entry, EntryKey, EntryKind, EntryName, ExpireRequest, ExtendItem,
    FailureGroup, Judged, LeaseRequest, Leased, Limit, ListRequest, Listener, LogName, LogRange, LogRecord,
    NackItem, NextDue, Now, Page, PauseQueue, QueueError, QueueStats, ReleaseItem, Released, Selection,
    Settled, Signal, Store, StoreError, SweepRequest, UpdateQueue, WriteOutcome, Writes,
};
use redrive_store_shared::{Alone, Joints, Pauses};
use uuid::Uuid;

use crate::clock::StoreClock;
use crate::durability::Promise;
use crate::error::{Fault, store_error, unreached};
use crate::lease::Turns;
use crate::migrate;
use crate::options::Options;
use crate::queue::Known;
use crate::row::time;
use crate::session::Link;
use crate::tls::connector;

/// How often a call is tried that was undone because somebody was in the way, or the connection was lost.
const TRIES: usize = 10;
/// The first and the longest pause between two tries; all of them are less than a second and a half.
const PAUSES: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(250));

/// A number of things, as PostgreSQL counts them.
pub(crate) fn items(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The same queue on PostgreSQL. Any number of instances may be open on one database.
#[derive(Debug)]
pub struct PostgresStore(Arc<Shared>);

/// What all calls share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) link: Arc<Link>,
    pub(crate) options: Options,
    receipt_key: ReceiptKey,
    /// What this instance is called among the others.
    pub(crate) name: String,
    cache: Mutex<HashMap<QueueName, Arc<Known>>>,
    turns: Mutex<HashMap<i32, Turns>>,
    pub(crate) joints: Joints,
}

impl Shared {
    pub(crate) fn cache(&self) -> MutexGuard<'_, HashMap<QueueName, Arc<Known>>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn turns(&self) -> MutexGuard<'_, HashMap<i32, Turns>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The epoch of lease ids, as of the connection that is held.
    pub(crate) fn epoch(&self) -> u16 {
        self.link.epoch()
    }
}

#[async_trait]
impl Alone for Shared {
    async fn enqueue_alone(
        &self,
        now: Now,
        batch: &Batch<EnqueueItem>,
    ) -> Result<Vec<EnqueueOutcome>, StoreError> {
        store_call(async || match self.enqueue_fast(now, batch).await? {
            Some(outcomes) => Ok(outcomes),
            None => self.enqueue(now, batch).await,
        })
        .await
    }

    async fn ack_alone(&self, now: Now, batch: &Batch<AckItem>) -> Result<Vec<Settled<Acked>>, StoreError> {
        store_call(async || match self.ack_fast(now, batch).await? {
            Some(outcomes) => Ok(outcomes),
            None => self.ack(now, batch).await,
        })
        .await
    }

    async fn nack_alone(
        &self,
        now: Now,
        batch: &Batch<NackItem>,
        seed: u64,
    ) -> Result<Vec<Settled<Judged>>, StoreError> {
        store_call(async || match self.nack_fast(now, batch, seed).await? {
            Some(outcomes) => Ok(outcomes),
            None => self.nack(now, batch, seed).await,
        })
        .await
    }

    /// Requests that differ in nothing but who asks for how many.
    async fn lease_alone(&self, now: Now, requests: &[LeaseRequest]) -> Result<Leased, QueueError> {
        queue_call(|| self.lease(now, requests)).await
    }
}

impl PostgresStore {
    /// Opens the store, after bringing the schema up to date. `fresh_key` becomes the key of receipts where the database has
    /// none yet.
    pub async fn open(options: Options, fresh_key: [u8; 32]) -> Result<Self, StoreError> {
        let connected = options.config()?.connect(connector(&options)?).await;
        let (mut client, connection) = connected.map_err(unreached)?;
        let running = tokio::spawn(connection);
        // Before anything is written: a commit may wait for a standby that is not there.
        let promise = Promise::wanted(&client, options.durability).await?;
        migrate::migrate(&mut client, &options).await?;
        let (receipt_key, epoch) = migrate::shared(&mut client, &options, fresh_key).await?;
        let name: Uuid = client.query_one("SELECT gen_random_uuid()", &[]).await.map_err(unreached)?.get(0);
        // The last of all: nothing is to lie between the answer and the look at our own clock.
        let clock = include_str!("../sql/clock.sql");
        let now = client.query_one(clock, &[&None::<i64>, &0_i64]).await.map_err(unreached)?.get(0);
        let link = Link::new(&options, name, epoch, time(now), promise)?;
        drop(client);
        // It ends by itself once nobody uses it; how is not of interest.
        drop(running.await);
        Ok(Self(Arc::new(Shared {
            link: Arc::new(link),
            options,
            receipt_key,
            name: name.to_string(),
            cache: Mutex::default(),
            turns: Mutex::default(),
            joints: Joints::default(),
        })))
    }

    #[cfg(test)]
    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.0.link
    }

    /// The clock of the database, as this instance knows it.
    pub fn clock(&self) -> StoreClock {
        StoreClock(Arc::clone(&self.0.link))
    }

    /// Closes all connections; calls that are under way finish.
    pub fn close(&self) {
        self.0.link.close();
    }
}

/// Does a step again as long as something undid it as a whole.
pub(crate) async fn again<T, F: Future<Output = Result<T, Fault>>>(step: impl Fn() -> F) -> Result<T, Fault> {
    let mut pauses = Pauses::new(PAUSES.0, PAUSES.1);
    for _ in 1..TRIES {
        match step().await {
            Err(Fault::Again(error)) => tracing::debug!(%error, "a call is tried again"),
            Err(Fault::Raced) => {}
            outcome => return outcome,
        }
        pauses.wait().await;
    }
    step().await
}

async fn queue_call<T, F: Future<Output = Result<T, Fault>>>(step: impl Fn() -> F) -> Result<T, QueueError> {
    Ok(again(step).await?)
}

async fn store_call<T, F: Future<Output = Result<T, Fault>>>(step: impl Fn() -> F) -> Result<T, StoreError> {
    again(step).await.map_err(store_error)
}

#[async_trait]
impl Store for PostgresStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "postgres",
            atomic_across_queues: true,
            store_clock: true,
            shared: true,
            survives: self.0.link.promise.survives(),
            restart_grace: Millis::ZERO,
        }
    }

    async fn receipt_key(&self) -> Result<ReceiptKey, StoreError> {
        Ok(self.0.receipt_key.clone())
    }

    async fn create_queue(&self, now: Now, request: CreateQueue) -> Result<Queue, QueueError> {
        queue_call(|| self.0.create_queue(now, &request)).await
    }

    async fn update_queue(&self, now: Now, request: UpdateQueue) -> Result<Queue, QueueError> {
        queue_call(|| self.0.update_queue(now, &request)).await
    }

    async fn delete_queue(&self, now: Now, request: DeleteQueue) -> Result<(), QueueError> {
        queue_call(|| self.0.delete_queue(now, &request)).await
    }

    async fn pause_queue(&self, now: Now, request: PauseQueue) -> Result<Queue, QueueError> {
        queue_call(|| self.0.pause_queue(now, &request)).await
    }

    async fn get_queue(&self, name: &QueueName) -> Result<Option<Queue>, StoreError> {
        store_call(|| self.0.get_queue(name)).await
    }

    async fn list_queues(&self, after: Option<&QueueName>, limit: Limit) -> Result<Vec<Queue>, StoreError> {
        store_call(|| self.0.list_queues(after, limit)).await
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
        store_call(|| self.0.extend(now, &batch)).await
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
        store_call(|| self.0.release(now, &batch)).await
    }

    async fn bury(&self, now: Now, batch: Batch<BuryItem>) -> Result<Vec<Settled<Judged>>, StoreError> {
        store_call(|| self.0.bury(now, &batch)).await
    }

    async fn expire(&self, now: Now, request: ExpireRequest) -> Result<Vec<Judged>, QueueError> {
        queue_call(|| self.0.expire(now, &request)).await
    }

    async fn lapse(&self, now: Now, request: SweepRequest) -> Result<Vec<Judged>, QueueError> {
        queue_call(|| self.0.lapse(now, &request)).await
    }

    async fn retain(&self, now: Now, request: SweepRequest) -> Result<u64, QueueError> {
        queue_call(|| self.0.retain(now, &request)).await
    }

    async fn reschedule(
        &self,
        now: Now,
        selection: Selection,
        change: Reschedule,
    ) -> Result<Bulk, QueueError> {
        queue_call(|| self.0.reschedule(now, &selection, change)).await
    }

    async fn move_to(&self, now: Now, selection: Selection, target: QueueName) -> Result<Bulk, QueueError> {
        queue_call(|| self.0.move_to(now, &selection, &target)).await
    }

    async fn redrive(
        &self,
        now: Now,
        selection: Selection,
        by: Note,
        reason: Note,
    ) -> Result<Bulk, QueueError> {
        queue_call(|| self.0.redrive(now, &selection, &by, &reason)).await
    }

    async fn discard(&self, now: Now, selection: Selection, force: bool) -> Result<Bulk, QueueError> {
        queue_call(|| self.0.discard(now, &selection, force)).await
    }

    async fn get(&self, queue: &QueueName, id: MessageId) -> Result<Option<Message>, StoreError> {
        store_call(|| self.0.get(queue, id)).await
    }

    async fn list(&self, now: Now, request: ListRequest) -> Result<Page, QueueError> {
        queue_call(|| self.0.list(now, &request)).await
    }

    async fn count(
        &self,
        now: Now,
        queue: &QueueName,
        by: CountBy,
        limit: Limit,
    ) -> Result<Counts, QueueError> {
        queue_call(|| self.0.count(now, queue, by, limit)).await
    }

    async fn stats(&self, now: Now, queue: &QueueName) -> Result<QueueStats, QueueError> {
        queue_call(|| self.0.stats(now, queue)).await
    }

    async fn failure_groups(&self, queue: &QueueName, limit: Limit) -> Result<Vec<FailureGroup>, QueueError> {
        queue_call(|| self.0.failure_groups(queue, limit)).await
    }

    async fn next_due(&self, now: Now, queue: Option<&QueueName>) -> Result<NextDue, QueueError> {
        queue_call(|| self.0.next_due(now, queue)).await
    }

    async fn registry_get(&self, key: &EntryKey) -> Result<Option<Entry>, StoreError> {
        store_call(|| self.0.registry_get(key)).await
    }

    async fn registry_list(
        &self,
        kind: EntryKind,
        after: Option<&EntryName>,
        limit: Limit,
    ) -> Result<Vec<Entry>, StoreError> {
        store_call(|| self.0.registry_list(kind, after, limit)).await
    }

    async fn registry_write(&self, writes: Writes) -> Result<WriteOutcome, StoreError> {
        store_call(|| self.0.registry_write(&writes)).await
    }

    async fn log_append(&self, now: Now, log: &LogName, records: Append) -> Result<Vec<u64>, StoreError> {
        store_call(|| self.0.log_append(now, log, &records)).await
    }

    async fn log_read(
        &self,
        log: &LogName,
        range: LogRange,
        limit: Limit,
    ) -> Result<Vec<LogRecord>, StoreError> {
        store_call(|| self.0.log_read(log, range, limit)).await
    }

    async fn log_trim(&self, log: &LogName, horizon: Timestamp) -> Result<u64, StoreError> {
        store_call(|| self.0.log_trim(log, horizon)).await
    }

    async fn tell(&self, signals: Vec<Signal>) -> Result<(), StoreError> {
        store_call(|| self.0.tell(&signals)).await
    }

    fn listen(&self) -> Option<Box<dyn Listener>> {
        Some(Box::new(self.0.listen()))
    }
}
