//! A door to a store that counts the calls through it, and that can be held: an instance whose calls are held is stopped, as
//! far as the others can tell.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use redrive_core::lifecycle::Reschedule;
use redrive_core::message::{Message, MessageId, Note};
use redrive_core::queue::{Queue, QueueName};
use redrive_core::receipt::ReceiptKey;
use redrive_core::time::Timestamp;
use redrive_store::{
    AckItem, Acked, Append, Batch, Bulk, BuryItem, Capabilities, CountBy, Counts, CreateQueue, DeleteQueue,
    EnqueueItem, EnqueueOutcome, Entry, EntryKey, EntryKind, EntryName, ExpireRequest, ExtendItem,
    FailureGroup, Judged, LeaseRequest, Leased, Limit, ListRequest, Listener, LogName, LogRange, LogRecord,
    NackItem, NextDue, Now, Page, PauseQueue, QueueError, QueueStats, ReleaseItem, Released, Selection,
    Settled, Signal, Store, StoreError, SweepRequest, UpdateQueue, WriteOutcome, Writes,
};
use redrive_store_memory::MemoryStore;
use tokio::sync::watch;

#[derive(Debug)]
pub(crate) struct Door {
    store: MemoryStore,
    calls: Mutex<BTreeMap<&'static str, usize>>,
    held: watch::Sender<BTreeSet<&'static str>>,
    full: AtomicBool,
}

/// Every call there is.
pub(crate) const EVERYTHING: &str = "*";

impl Door {
    pub(crate) fn new(store: MemoryStore) -> Self {
        Self { store, calls: Mutex::default(), held: watch::Sender::default(), full: AtomicBool::new(false) }
    }

    /// How often that was called and not held.
    pub(crate) fn calls(&self, call: &str) -> usize {
        self.calls.lock().unwrap().get(call).copied().unwrap_or_default()
    }

    /// Holds calls until the door is opened.
    pub(crate) fn hold(&self, call: &'static str) {
        self.held.send_modify(|held| {
            held.insert(call);
        });
    }

    pub(crate) fn open(&self) {
        self.held.send_modify(BTreeSet::clear);
    }

    /// Whether the store has no room for messages.
    pub(crate) fn fill(&self, full: bool) {
        self.full.store(full, Ordering::SeqCst);
    }

    fn refuses(&self, call: &str) -> bool {
        call == "enqueue" && self.full.load(Ordering::SeqCst)
    }

    async fn pass(&self, call: &'static str) {
        let held = |held: &BTreeSet<&str>| !held.contains(call) && !held.contains(EVERYTHING);
        drop(self.held.subscribe().wait_for(held).await);
        *self.calls.lock().unwrap().entry(call).or_default() += 1;
    }
}

macro_rules! calls {
    ($($call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl Store for Door {
            fn capabilities(&self) -> Capabilities {
                self.store.capabilities()
            }

            fn listen(&self) -> Option<Box<dyn Listener>> {
                self.store.listen()
            }

            $(async fn $call(&self, $($argument: $type),*) -> $answer {
                self.pass(stringify!($call)).await;
                if self.refuses(stringify!($call)) {
                    return Err(StoreError::StorageFull.into());
                }
                self.store.$call($($argument),*).await
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
}
