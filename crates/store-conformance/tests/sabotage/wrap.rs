//! The wrapper: a store that is the reference, except for what a sabotage does otherwise.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use redrive_core::lifecycle::Reschedule;
use redrive_core::message::{Message, MessageId, Note};
use redrive_core::queue::{Queue, QueueName};
use redrive_core::receipt::ReceiptKey;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    AckItem, Acked, Append, Batch, Bulk, BuryItem, Capabilities, CountBy, Counts, CreateQueue, DeleteQueue,
    EnqueueItem, EnqueueOutcome, Entry, EntryKey, EntryKind, EntryName, ExpireRequest, ExtendItem,
    FailureGroup, Judged, LeaseRequest, Leased, Limit, ListRequest, Listener, LockClaim, LogName, LogRange,
    LogRecord, NackItem, NextDue, Now, Page, PauseQueue, QueueError, QueueStats, ReleaseItem, Released,
    Selection, Settled, Signal, Store, StoreError, SweepRequest, UpdateQueue, WriteOutcome, Writes,
};
use redrive_store_conformance::{Instance, Memory, Setup, Subject};

/// Declares every call of the port once: as a hook that passes it on, and as the store that calls the hook.
macro_rules! calls {
    ($($call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        /// What a sabotage does otherwise. A hook that is not written passes the call on.
        #[async_trait]
        pub(crate) trait Sabotage: Debug + Send + Sync {
            /// What happens right after a restart.
            async fn restarted(&self, _store: &dyn Store, _now: Timestamp) {}

            $(async fn $call(&self, store: &dyn Store, $($argument: $type),*) -> $answer {
                store.$call($($argument),*).await
            })*
        }

        #[async_trait]
        impl Store for Sabotaged {
            fn capabilities(&self) -> Capabilities {
                self.store.capabilities()
            }

            fn listen(&self) -> Option<Box<dyn Listener>> {
                self.store.listen()
            }

            $(async fn $call(&self, $($argument: $type),*) -> $answer {
                self.sabotage.$call(self.store.as_ref(), $($argument),*).await
            })*
        }
    };
}

calls! {
    receipt_key() -> Result<ReceiptKey, StoreError>;
    create_queue(now: Now, request: CreateQueue) -> Result<Queue, QueueError>;
    update_queue(now: Now, request: UpdateQueue) -> Result<Queue, QueueError>;
    delete_queue(now: Now, request: DeleteQueue) -> Result<(), QueueError>;
    pause_queue(now: Now, request: PauseQueue) -> Result<Queue, QueueError>;
    get_queue(name: &QueueName) -> Result<Option<Queue>, StoreError>;
    list_queues(after: Option<&QueueName>, limit: Limit) -> Result<Vec<Queue>, StoreError>;
    enqueue(now: Now, batch: Batch<EnqueueItem>) -> Result<Vec<EnqueueOutcome>, StoreError>;
    lease(now: Now, request: LeaseRequest) -> Result<Leased, QueueError>;
    extend(now: Now, batch: Batch<ExtendItem>) -> Result<Vec<Settled<Timestamp>>, StoreError>;
    ack(now: Now, batch: Batch<AckItem>) -> Result<Vec<Settled<Acked>>, StoreError>;
    nack(now: Now, batch: Batch<NackItem>, seed: u64) -> Result<Vec<Settled<Judged>>, StoreError>;
    release(now: Now, batch: Batch<ReleaseItem>) -> Result<Vec<Settled<Released>>, StoreError>;
    bury(now: Now, batch: Batch<BuryItem>) -> Result<Vec<Settled<Judged>>, StoreError>;
    expire(now: Now, request: ExpireRequest) -> Result<Vec<Judged>, QueueError>;
    lapse(now: Now, request: SweepRequest) -> Result<Vec<Judged>, QueueError>;
    retain(now: Now, request: SweepRequest) -> Result<u64, QueueError>;
    reschedule(now: Now, selection: Selection, change: Reschedule) -> Result<Bulk, QueueError>;
    move_to(now: Now, selection: Selection, target: QueueName) -> Result<Bulk, QueueError>;
    redrive(now: Now, selection: Selection, by: Note, reason: Note) -> Result<Bulk, QueueError>;
    discard(now: Now, selection: Selection, force: bool) -> Result<Bulk, QueueError>;
    get(queue: &QueueName, id: MessageId) -> Result<Option<Message>, StoreError>;
    list(now: Now, request: ListRequest) -> Result<Page, QueueError>;
    count(now: Now, queue: &QueueName, by: CountBy, limit: Limit) -> Result<Counts, QueueError>;
    stats(now: Now, queue: &QueueName) -> Result<QueueStats, QueueError>;
    failure_groups(queue: &QueueName, limit: Limit) -> Result<Vec<FailureGroup>, QueueError>;
    next_due(now: Now, queue: Option<&QueueName>) -> Result<NextDue, QueueError>;
    registry_get(key: &EntryKey) -> Result<Option<Entry>, StoreError>;
    registry_list(kind: EntryKind, after: Option<&EntryName>, limit: Limit) -> Result<Vec<Entry>, StoreError>;
    registry_write(writes: Writes) -> Result<WriteOutcome, StoreError>;
    log_append(now: Now, log: &LogName, records: Append) -> Result<Vec<u64>, StoreError>;
    log_read(log: &LogName, range: LogRange, limit: Limit) -> Result<Vec<LogRecord>, StoreError>;
    log_trim(log: &LogName, horizon: Timestamp) -> Result<u64, StoreError>;
    tell(signals: Vec<Signal>) -> Result<(), StoreError>;
    hold_lock(now: Timestamp, claim: &LockClaim, lifetime: Millis) -> Result<bool, StoreError>;
    release_lock(claim: &LockClaim) -> Result<bool, StoreError>;
}

#[derive(Debug)]
pub(crate) struct Sabotaged {
    store: Arc<dyn Store>,
    sabotage: Arc<dyn Sabotage>,
}

/// The reference with a sabotage, as a subject of the suite.
pub(crate) struct Saboteur {
    pub(crate) name: &'static str,
    pub(crate) make: fn() -> Arc<dyn Sabotage>,
}

#[async_trait]
impl Subject for Saboteur {
    fn name(&self) -> &str {
        self.name
    }

    async fn open(&self, setup: &Setup) -> Box<dyn Instance> {
        Box::new(Open { inner: Memory.open(setup).await, sabotage: (self.make)() })
    }
}

struct Open {
    inner: Box<dyn Instance>,
    sabotage: Arc<dyn Sabotage>,
}

#[async_trait]
impl Instance for Open {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(Sabotaged { store: self.inner.store(), sabotage: Arc::clone(&self.sabotage) })
    }

    async fn another(&self) -> Option<Arc<dyn Store>> {
        let store = self.inner.another().await?;
        Some(Arc::new(Sabotaged { store, sabotage: Arc::clone(&self.sabotage) }))
    }

    async fn restart(self: Box<Self>, now: Timestamp) -> Box<dyn Instance> {
        let inner = self.inner.restart(now).await;
        self.sabotage.restarted(inner.store().as_ref(), now).await;
        Box::new(Open { inner, sabotage: self.sabotage })
    }
}
