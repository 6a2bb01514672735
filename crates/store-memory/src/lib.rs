//! The reference store: everything in one process, obvious and correct.
//!
//! It has no index. Every call looks through the messages of its queue, so nothing can drift from the truth, and
//! it costs as much as there are messages; `redrive serve --store memory` is for trying things out, and the model
//! tests compare every other store with it. The rules are those of `redrive-core`; what is here says in which
//! order they are asked.
//!
//! [`MemoryStore`] locks one `State`; each verb is a method of that state in the file of its name.

mod batch;
mod bulk;
mod count;
mod death;
mod dedup;
mod discard;
mod enqueue;
mod expire;
mod extend;
mod follow;
mod lapse;
mod lease;
mod list;
mod log;
mod r#move;
mod nack;
mod queue;
mod redrive;
mod registry;
mod release;
mod reschedule;
mod settle;
mod signal;
mod state;

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use redrive_core::lifecycle::Reschedule;
use redrive_core::limits::Limits;
use redrive_core::message::{Message, MessageId, Note};
use redrive_core::queue::{Queue, QueueName, QueueSettings};
use redrive_core::receipt::ReceiptKey;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    AckItem, Acked, Append, Batch, Bulk, BuryItem, Capabilities, CountBy, Counts, CreateQueue, DeleteQueue,
    EnqueueItem, EnqueueOutcome, Entry, EntryKey, EntryKind, EntryName, ExpireRequest, ExtendItem,
    FailureGroup, Judged, LeaseRequest, Leased, Limit, ListRequest, Listener, LogName, LogRange, LogRecord,
    NackItem, NextDue, Now, Page, PauseQueue, QueueError, QueueStats, ReleaseItem, Released, Selection,
    Settled, Signal, Store, StoreError, Survives, SweepRequest, UpdateQueue, WriteOutcome, Writes,
};

use crate::signal::Signals;
use crate::state::State;

/// What a store is opened with.
#[derive(Debug, Clone)]
pub struct Options {
    /// The settings of a queue that sets nothing.
    pub defaults: QueueSettings,
    /// What a queue may hold.
    pub limits: Limits,
    /// The key of its receipts.
    pub receipt_key: ReceiptKey,
    /// The first epoch of its lease ids; each [`MemoryStore::reopen`] takes the next.
    pub first_epoch: u16,
    /// What a lease that has run out when the store is reopened is granted.
    pub restart_grace: Millis,
    /// Whether it has several doors, each of them an instance to whoever stands behind it.
    pub shared: bool,
}

impl Options {
    /// The defaults, with that key.
    pub fn new(receipt_key: ReceiptKey) -> Self {
        Self {
            defaults: QueueSettings::default(),
            limits: Limits::default(),
            receipt_key,
            first_epoch: 1,
            restart_grace: Millis::from_secs(5),
            shared: false,
        }
    }
}

/// A store that lives as long as the process.
#[derive(Debug)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    /// `None` where there is but one door.
    signals: Option<Signals>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(options: Options) -> Self {
        let signals = options.shared.then(Signals::default);
        Self { state: Arc::new(Mutex::new(State::new(options))), signals }
    }

    /// Another door to the same data, as another process would open a database; `None` where there is but one.
    pub fn door(&self) -> Option<Self> {
        let signals = self.signals.as_ref()?.door();
        Some(Self { state: Arc::clone(&self.state), signals: Some(signals) })
    }

    /// What a durable store would be after it was closed, or crashed, and opened again at `now`: everything that
    /// was answered is there, leases go on in a new epoch, and what an instance kept for itself is forgotten.
    pub fn reopen(&self, now: Timestamp) -> Result<Self, StoreError> {
        let state = Arc::new(Mutex::new(self.with(|state| state.reopened(now))?));
        Ok(Self { state, signals: self.signals.as_ref().map(|_| Signals::default()) })
    }

    /// Runs one verb on the state. A verb that panicked has left it half done only if the rules themselves are
    /// broken, so a poisoned lock is taken over and the tests tell.
    fn with<T>(&self, verb: impl FnOnce(&mut State) -> T) -> T {
        verb(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same at a time.
    fn at<T, E: From<StoreError>>(
        &self,
        now: Now,
        verb: impl FnOnce(&mut State, Timestamp) -> Result<T, E>,
    ) -> Result<T, E> {
        self.with(|state| {
            let now = state.clock(now)?;
            verb(state, now)
        })
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "memory",
            atomic_across_queues: true,
            store_clock: false,
            shared: self.signals.is_some(),
            survives: Survives::Nothing,
            restart_grace: self.with(|state| state.options.restart_grace),
        }
    }

    async fn receipt_key(&self) -> Result<ReceiptKey, StoreError> {
        Ok(self.with(|state| state.options.receipt_key.clone()))
    }

    async fn create_queue(&self, now: Now, request: CreateQueue) -> Result<Queue, QueueError> {
        self.at(now, |state, now| state.create_queue(now, request))
    }

    async fn update_queue(&self, now: Now, request: UpdateQueue) -> Result<Queue, QueueError> {
        self.at(now, |state, _| state.update_queue(request))
    }

    async fn delete_queue(&self, now: Now, request: DeleteQueue) -> Result<(), QueueError> {
        self.at(now, |state, _| state.delete_queue(&request))
    }

    async fn pause_queue(&self, now: Now, request: PauseQueue) -> Result<Queue, QueueError> {
        self.at(now, |state, now| state.pause_queue(now, request))
    }

    async fn get_queue(&self, name: &QueueName) -> Result<Option<Queue>, StoreError> {
        Ok(self.with(|state| state.get_queue(name)))
    }

    async fn list_queues(&self, after: Option<&QueueName>, limit: Limit) -> Result<Vec<Queue>, StoreError> {
        Ok(self.with(|state| state.list_queues(after, limit.get())))
    }

    async fn enqueue(&self, now: Now, batch: Batch<EnqueueItem>) -> Result<Vec<EnqueueOutcome>, StoreError> {
        self.at(now, |state, now| Ok(state.enqueue(now, batch)))
    }

    async fn lease(&self, now: Now, request: LeaseRequest) -> Result<Leased, QueueError> {
        self.at(now, |state, now| state.lease(now, &request))
    }

    async fn extend(
        &self,
        now: Now,
        batch: Batch<ExtendItem>,
    ) -> Result<Vec<Settled<Timestamp>>, StoreError> {
        self.at(now, |state, now| Ok(state.extend(now, batch)))
    }

    async fn ack(&self, now: Now, batch: Batch<AckItem>) -> Result<Vec<Settled<Acked>>, StoreError> {
        self.at(now, |state, now| Ok(state.ack(now, batch)))
    }

    async fn nack(
        &self,
        now: Now,
        batch: Batch<NackItem>,
        seed: u64,
    ) -> Result<Vec<Settled<Judged>>, StoreError> {
        self.at(now, |state, now| Ok(state.nack(now, batch, seed)))
    }

    async fn release(
        &self,
        now: Now,
        batch: Batch<ReleaseItem>,
    ) -> Result<Vec<Settled<Released>>, StoreError> {
        self.at(now, |state, now| Ok(state.release(now, batch)))
    }

    async fn bury(&self, now: Now, batch: Batch<BuryItem>) -> Result<Vec<Settled<Judged>>, StoreError> {
        self.at(now, |state, now| Ok(state.bury(now, batch)))
    }

    async fn expire(&self, now: Now, request: ExpireRequest) -> Result<Vec<Judged>, QueueError> {
        self.at(now, |state, now| state.expire(now, &request))
    }

    async fn lapse(&self, now: Now, request: SweepRequest) -> Result<Vec<Judged>, QueueError> {
        self.at(now, |state, now| state.lapse(now, &request))
    }

    async fn retain(&self, now: Now, request: SweepRequest) -> Result<u64, QueueError> {
        self.at(now, |state, now| state.retain(now, &request))
    }

    async fn reschedule(
        &self,
        now: Now,
        selection: Selection,
        change: Reschedule,
    ) -> Result<Bulk, QueueError> {
        self.at(now, |state, now| state.reschedule(now, &selection, change))
    }

    async fn move_to(&self, now: Now, selection: Selection, target: QueueName) -> Result<Bulk, QueueError> {
        self.at(now, |state, now| state.move_to(now, &selection, &target))
    }

    async fn redrive(
        &self,
        now: Now,
        selection: Selection,
        by: Note,
        reason: Note,
    ) -> Result<Bulk, QueueError> {
        self.at(now, |state, now| state.redrive(now, &selection, &by, &reason))
    }

    async fn discard(&self, now: Now, selection: Selection, force: bool) -> Result<Bulk, QueueError> {
        self.at(now, |state, now| state.discard(now, &selection, force))
    }

    async fn get(&self, queue: &QueueName, id: MessageId) -> Result<Option<Message>, StoreError> {
        Ok(self.with(|state| state.get(queue, id)))
    }

    async fn list(&self, now: Now, request: ListRequest) -> Result<Page, QueueError> {
        self.at(now, |state, now| state.list(now, &request))
    }

    async fn count(
        &self,
        now: Now,
        queue: &QueueName,
        by: CountBy,
        limit: Limit,
    ) -> Result<Counts, QueueError> {
        self.at(now, |state, now| state.count(now, queue, by, limit.get()))
    }

    async fn stats(&self, now: Now, queue: &QueueName) -> Result<QueueStats, QueueError> {
        self.at(now, |state, now| state.stats(now, queue))
    }

    async fn failure_groups(&self, queue: &QueueName, limit: Limit) -> Result<Vec<FailureGroup>, QueueError> {
        self.with(|state| state.failure_groups(queue, limit.get()))
    }

    async fn next_due(&self, now: Now, queue: Option<&QueueName>) -> Result<NextDue, QueueError> {
        self.at(now, |state, now| state.next_due(now, queue))
    }

    async fn registry_get(&self, key: &EntryKey) -> Result<Option<Entry>, StoreError> {
        Ok(self.with(|state| state.registry_get(key)))
    }

    async fn registry_list(
        &self,
        kind: EntryKind,
        after: Option<&EntryName>,
        limit: Limit,
    ) -> Result<Vec<Entry>, StoreError> {
        Ok(self.with(|state| state.registry_list(kind, after, limit.get())))
    }

    async fn registry_write(&self, writes: Writes) -> Result<WriteOutcome, StoreError> {
        Ok(self.with(|state| state.registry_write(writes)))
    }

    async fn log_append(&self, now: Now, log: &LogName, records: Append) -> Result<Vec<u64>, StoreError> {
        self.at(now, |state, now| Ok(state.log_append(now, log, records)))
    }

    async fn log_read(
        &self,
        log: &LogName,
        range: LogRange,
        limit: Limit,
    ) -> Result<Vec<LogRecord>, StoreError> {
        Ok(self.with(|state| state.log_read(log, range, limit.get())))
    }

    async fn log_trim(&self, log: &LogName, horizon: Timestamp) -> Result<u64, StoreError> {
        Ok(self.with(|state| state.log_trim(log, horizon)))
    }

    async fn tell(&self, signals: Vec<Signal>) -> Result<(), StoreError> {
        if let Some(told) = &self.signals {
            told.tell(&signals);
        }
        Ok(())
    }

    fn listen(&self) -> Option<Box<dyn Listener>> {
        Some(Box::new(self.signals.as_ref()?.listen()))
    }
}
