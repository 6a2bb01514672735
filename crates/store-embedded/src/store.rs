//! The store as everybody else sees it: each call becomes a command, and waits for its answer.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::channel::oneshot;
use redrive_core::lifecycle::Reschedule;
use redrive_core::message::{Message, MessageId, Note};
use redrive_core::queue::{Queue, QueueName};
use redrive_core::receipt::ReceiptKey;
use redrive_core::time::Timestamp;
use redrive_store::{
    AckItem, Acked, Append, Batch, Bulk, BuryItem, Capabilities, CountBy, Counts, CreateQueue, DeleteQueue,
    EnqueueItem, EnqueueOutcome, Entry, EntryKey, EntryKind, EntryName, ExpireRequest, ExtendItem,
    FailureGroup, Item, Judged, LeaseRequest, Leased, Limit, ListRequest, LogName, LogRange, LogRecord,
    NackItem, NextDue, Now, Page, PauseQueue, QueueError, QueueStats, ReleaseItem, Released, Selection,
    Settled, Store, StoreError, Survives, SweepRequest, UpdateQueue, WriteOutcome, Writes,
};

use crate::clock::{Clock, MachineClock};
use crate::core::Core;
use crate::disk::{Disk, RealDisk};
use crate::driver::{Stepped, Writer};
use crate::engine::{Call, Command, Engine, Later, Needs};
use crate::enqueue::enqueue_bytes;
use crate::fault::{Fault, unavailable};
use crate::journal::Purpose;
use crate::time::StoreClock;
use crate::{Durability, Options};

/// What one change of a message writes, at most about so many bytes, beside texts that it carries.
const CHANGE_BYTES: usize = 256;
/// What a queue, or a command besides its items, writes at most.
const SMALL_BYTES: usize = 4 * 1024;
/// What a message that is gone writes.
const PLACE_BYTES: usize = 8;

enum Driver {
    Thread(Mutex<Writer>, Arc<crate::driver::Inbox>),
    Caller(Arc<Mutex<Stepped>>),
}

/// The default store: a journal in a directory that one process owns.
pub struct EmbeddedStore {
    driver: Driver,
    capabilities: Capabilities,
    clock: StoreClock,
}

impl fmt::Debug for EmbeddedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedStore").field("capabilities", &self.capabilities).finish_non_exhaustive()
    }
}

/// Drives a store that was opened with [`EmbeddedStore::stepped`].
#[derive(Clone)]
pub struct Stepper(Arc<Mutex<Stepped>>);

impl fmt::Debug for Stepper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stepper")
    }
}

impl Stepper {
    /// Whether calls wait for [`Stepper::step`] from now on, instead of being a step each.
    pub fn hold(&self, hold: bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).hold = hold;
    }

    /// Runs the calls that wait, together.
    pub fn step(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).step();
    }
}

impl EmbeddedStore {
    /// Opens a directory, which is made where it is not there, and starts the thread that writes to it.
    pub fn open(dir: impl Into<PathBuf>, options: Options) -> Result<Self, StoreError> {
        let disk = RealDisk::new(dir).map_err(unavailable)?;
        Self::open_on(Arc::new(disk), Arc::new(MachineClock), options)
    }

    /// The same on any disk and with any clock.
    #[expect(clippy::needless_pass_by_value, reason = "the store keeps its disk")]
    pub fn open_on(disk: Arc<dyn Disk>, clock: Arc<dyn Clock>, options: Options) -> Result<Self, StoreError> {
        let engine = open_engine(&disk, clock, options)?;
        let (capabilities, clock) = (capabilities(&engine), engine.core.time.clock.clone());
        let writer = Writer::spawn(engine)?;
        let inbox = Arc::clone(&writer.inbox);
        Ok(Self { driver: Driver::Thread(Mutex::new(writer), inbox), capabilities, clock })
    }

    /// Opens a directory with no thread: each call is a step of its own, done when it is first polled, or waits for
    /// [`Stepper::step`]. Every run with the same calls is the same.
    #[expect(clippy::needless_pass_by_value, reason = "the store keeps its disk")]
    pub fn stepped(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Result<(Self, Stepper), StoreError> {
        let engine = open_engine(&disk, clock, options)?;
        let (capabilities, clock) = (capabilities(&engine), engine.core.time.clock.clone());
        let stepped = Arc::new(Mutex::new(Stepped { engine, commands: VecDeque::new(), hold: false }));
        let driver = Driver::Caller(Arc::clone(&stepped));
        Ok((Self { driver, capabilities, clock }, Stepper(stepped)))
    }

    /// The clock that decides in this store.
    pub fn clock(&self) -> StoreClock {
        self.clock.clone()
    }

    /// Finishes what was asked, and gets everything onto the disk. A store that is dropped does the same and tells
    /// nobody how it went.
    pub fn close(self) -> Result<(), StoreError> {
        match self.driver {
            Driver::Thread(writer, _) => writer.into_inner().unwrap_or_else(PoisonError::into_inner).close(),
            Driver::Caller(stepped) => stepped.lock().unwrap_or_else(PoisonError::into_inner).engine.close(),
        }
    }

    /// Has something done by the engine.
    async fn ask<T: Send + 'static>(
        &self,
        needs: Needs,
        run: impl FnOnce(&mut Core) -> Later<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let command: Box<dyn Command> = Box::new(Call { needs, run, answer });
        match &self.driver {
            Driver::Thread(_, inbox) => inbox.submit(command).await,
            Driver::Caller(stepped) => stepped.lock().unwrap_or_else(PoisonError::into_inner).submit(command),
        }
        answered.await.unwrap_or_else(|_| Err(Fault::new("asking", "the store ended").unknown()))
    }

    pub(crate) async fn look<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut Core) -> Later<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.ask(Needs { purpose: None, bytes: 0, log_bytes: 0 }, run).await
    }

    async fn change<T: Send + 'static>(
        &self,
        bytes: usize,
        run: impl FnOnce(&mut Core) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let needs = Needs { purpose: Some(Purpose::Change), bytes, log_bytes: 0 };
        self.ask(needs, |core| Later::Now(run(core))).await
    }

    async fn grow<T: Send + 'static>(
        &self,
        bytes: usize,
        log_bytes: usize,
        run: impl FnOnce(&mut Core) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let needs = Needs { purpose: Some(Purpose::Grow), bytes, log_bytes };
        self.ask(needs, |core| Later::Now(run(core))).await
    }
}

fn open_engine(disk: &Arc<dyn Disk>, clock: Arc<dyn Clock>, options: Options) -> Result<Engine, StoreError> {
    let mut random = [0; 32];
    let filled = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
    if filled.map_err(|error| unavailable(std::io::Error::from(error)))? != random.len() {
        return Err(StoreError::Unavailable("the kernel gave too little randomness".into()));
    }
    Ok(Engine::new(Core::open(disk, clock, options, random)?))
}

fn capabilities(engine: &Engine) -> Capabilities {
    let options = &engine.core.options;
    Capabilities {
        name: "embedded",
        atomic_across_queues: true,
        store_clock: true,
        shared: false,
        survives: match options.durability {
            Durability::Sync => Survives::PowerLoss,
            Durability::Interval(_) | Durability::None => Survives::ProcessCrash,
        },
        restart_grace: options.restart_grace,
    }
}

/// What a batch of settlements writes, at most about so many bytes.
fn settle_bytes<T: Item>(batch: &Batch<T>) -> usize {
    batch.items().iter().map(|item| item.load() + CHANGE_BYTES).sum()
}

fn bulk_bytes(selection: &Selection, texts: usize) -> usize {
    if selection.dry_run { 0 } else { SMALL_BYTES + selection.limit.get() * (CHANGE_BYTES / 4 + texts) }
}

/// What ends so many attempts, or lives, writes: of each what it came to, and that much text.
fn sweep_bytes(limit: Limit, texts: usize) -> usize {
    SMALL_BYTES + limit.get() * (CHANGE_BYTES / 2 + texts)
}

#[async_trait]
impl Store for EmbeddedStore {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    async fn receipt_key(&self) -> Result<ReceiptKey, StoreError> {
        self.look(|core| Later::Now(ReceiptKey::new(core.store.receipt_key))).await
    }

    async fn create_queue(&self, now: Now, request: CreateQueue) -> Result<Queue, QueueError> {
        self.grow(SMALL_BYTES, 0, move |core| {
            let now = core.time.at(now);
            core.create_queue(now, request)
        })
        .await?
    }

    async fn update_queue(&self, now: Now, request: UpdateQueue) -> Result<Queue, QueueError> {
        self.change(SMALL_BYTES, move |core| {
            core.time.at(now);
            core.update_queue(request)
        })
        .await?
    }

    async fn delete_queue(&self, now: Now, request: DeleteQueue) -> Result<(), QueueError> {
        self.change(SMALL_BYTES, move |core| {
            core.time.at(now);
            core.delete_queue(&request)
        })
        .await?
    }

    async fn pause_queue(&self, now: Now, request: PauseQueue) -> Result<Queue, QueueError> {
        self.change(SMALL_BYTES, move |core| {
            let now = core.time.at(now);
            core.pause_queue(now, request)
        })
        .await?
    }

    async fn get_queue(&self, name: &QueueName) -> Result<Option<Queue>, StoreError> {
        let name = name.clone();
        self.look(move |core| Later::Now(core.get_queue(&name))).await
    }

    async fn list_queues(&self, after: Option<&QueueName>, limit: Limit) -> Result<Vec<Queue>, StoreError> {
        let after = after.cloned();
        self.look(move |core| Later::Now(core.list_queues(after.as_ref(), limit.get()))).await
    }

    async fn enqueue(&self, now: Now, batch: Batch<EnqueueItem>) -> Result<Vec<EnqueueOutcome>, StoreError> {
        self.grow(enqueue_bytes(&batch), 0, move |core| {
            let now = core.time.at(now);
            core.enqueue(now, batch)
        })
        .await
    }

    async fn lease(&self, now: Now, request: LeaseRequest) -> Result<Leased, QueueError> {
        let bytes = SMALL_BYTES + request.limit.get() * 16;
        let needs = Needs { purpose: Some(Purpose::Change), bytes, log_bytes: 0 };
        let lease = move |core: &mut Core| {
            let at = core.time.at(now);
            match core.lease(at, &request) {
                Err(error) => Later::Now(Err(error)),
                Ok(leases) => Later::Load(
                    leases.shots.len(),
                    Box::new(move |core: &Core| {
                        let messages = core.journal.load(leases.shots)?;
                        Ok(Ok(Leased { at, messages, more: leases.more, swept: leases.swept }))
                    }),
                ),
            }
        };
        self.ask(needs, lease).await?
    }

    async fn extend(
        &self,
        now: Now,
        batch: Batch<ExtendItem>,
    ) -> Result<Vec<Settled<Timestamp>>, StoreError> {
        self.change(settle_bytes(&batch), move |core| {
            let now = core.time.at(now);
            core.extend(now, batch)
        })
        .await
    }

    async fn ack(&self, now: Now, batch: Batch<AckItem>) -> Result<Vec<Settled<Acked>>, StoreError> {
        self.change(settle_bytes(&batch) / 4, move |core| {
            let now = core.time.at(now);
            core.ack(now, batch)
        })
        .await
    }

    async fn nack(
        &self,
        now: Now,
        batch: Batch<NackItem>,
        seed: u64,
    ) -> Result<Vec<Settled<Judged>>, StoreError> {
        self.change(settle_bytes(&batch), move |core| {
            let now = core.time.at(now);
            core.nack(now, batch, seed)
        })
        .await
    }

    async fn release(
        &self,
        now: Now,
        batch: Batch<ReleaseItem>,
    ) -> Result<Vec<Settled<Released>>, StoreError> {
        self.change(settle_bytes(&batch), move |core| {
            let now = core.time.at(now);
            core.release(now, batch)
        })
        .await
    }

    async fn bury(&self, now: Now, batch: Batch<BuryItem>) -> Result<Vec<Settled<Judged>>, StoreError> {
        self.change(settle_bytes(&batch), move |core| {
            let now = core.time.at(now);
            core.bury(now, batch)
        })
        .await
    }

    async fn expire(&self, now: Now, request: ExpireRequest) -> Result<Vec<Judged>, QueueError> {
        let text = request.error.as_ref().map_or(0, |error| error.as_str().len());
        self.change(sweep_bytes(request.limit, text), move |core| {
            let now = core.time.at(now);
            core.expire(now, &request)
        })
        .await?
    }

    async fn lapse(&self, now: Now, request: SweepRequest) -> Result<Vec<Judged>, QueueError> {
        self.change(sweep_bytes(request.limit, 0), move |core| {
            let now = core.time.at(now);
            core.lapse(now, &request)
        })
        .await?
    }

    async fn retain(&self, now: Now, request: SweepRequest) -> Result<u64, QueueError> {
        self.change(SMALL_BYTES + request.limit.get() * PLACE_BYTES, move |core| {
            let now = core.time.at(now);
            core.retain(now, &request)
        })
        .await?
    }

    async fn reschedule(
        &self,
        now: Now,
        selection: Selection,
        change: Reschedule,
    ) -> Result<Bulk, QueueError> {
        self.change(bulk_bytes(&selection, 0), move |core| {
            let now = core.time.at(now);
            core.reschedule(now, &selection, change)
        })
        .await?
    }

    async fn move_to(&self, now: Now, selection: Selection, target: QueueName) -> Result<Bulk, QueueError> {
        self.change(bulk_bytes(&selection, 0), move |core| {
            let now = core.time.at(now);
            core.move_to(now, &selection, &target)
        })
        .await?
    }

    async fn redrive(
        &self,
        now: Now,
        selection: Selection,
        by: Note,
        reason: Note,
    ) -> Result<Bulk, QueueError> {
        let texts = by.as_str().len() + reason.as_str().len();
        self.change(bulk_bytes(&selection, texts), move |core| {
            let now = core.time.at(now);
            core.redrive(now, &selection, &by, &reason)
        })
        .await?
    }

    async fn discard(&self, now: Now, selection: Selection, force: bool) -> Result<Bulk, QueueError> {
        self.change(bulk_bytes(&selection, 0) / 4, move |core| {
            let now = core.time.at(now);
            core.discard(now, &selection, force)
        })
        .await?
    }

    async fn get(&self, queue: &QueueName, id: MessageId) -> Result<Option<Message>, StoreError> {
        let queue = queue.clone();
        self.look(move |core| match core.get(&queue, id) {
            None => Later::Now(None),
            Some(shot) => {
                Later::Load(1, Box::new(move |core: &Core| Ok(core.journal.load(vec![shot])?.pop())))
            }
        })
        .await
    }

    async fn list(&self, now: Now, request: ListRequest) -> Result<Page, QueueError> {
        self.look(move |core| {
            let at = core.time.at(now);
            match core.list(at, &request) {
                Err(error) => Later::Now(Err(error)),
                Ok((shots, next)) => Later::Load(
                    shots.len(),
                    Box::new(move |core: &Core| {
                        Ok(Ok(Page { at, messages: core.journal.load(shots)?, next }))
                    }),
                ),
            }
        })
        .await?
    }

    async fn count(
        &self,
        now: Now,
        queue: &QueueName,
        by: CountBy,
        limit: Limit,
    ) -> Result<Counts, QueueError> {
        let queue = queue.clone();
        self.look(move |core| {
            let now = core.time.at(now);
            Later::Now(core.count_by(now, &queue, by, limit.get()))
        })
        .await?
    }

    async fn stats(&self, now: Now, queue: &QueueName) -> Result<QueueStats, QueueError> {
        let queue = queue.clone();
        self.look(move |core| {
            let now = core.time.at(now);
            Later::Now(core.stats(now, &queue))
        })
        .await?
    }

    async fn failure_groups(&self, queue: &QueueName, limit: Limit) -> Result<Vec<FailureGroup>, QueueError> {
        let queue = queue.clone();
        self.look(move |core| Later::Now(core.failure_groups(&queue, limit.get()))).await?
    }

    async fn next_due(&self, now: Now, queue: Option<&QueueName>) -> Result<NextDue, QueueError> {
        let queue = queue.cloned();
        self.look(move |core| {
            let now = core.time.at(now);
            Later::Now(core.next_due(now, queue.as_ref()))
        })
        .await?
    }

    async fn registry_get(&self, key: &EntryKey) -> Result<Option<Entry>, StoreError> {
        let key = key.clone();
        self.look(move |core| Later::Now(core.registry_get(&key))).await
    }

    async fn registry_list(
        &self,
        kind: EntryKind,
        after: Option<&EntryName>,
        limit: Limit,
    ) -> Result<Vec<Entry>, StoreError> {
        let after = after.cloned();
        self.look(move |core| Later::Now(core.registry_list(kind, after.as_ref(), limit.get()))).await
    }

    async fn registry_write(&self, writes: Writes) -> Result<WriteOutcome, StoreError> {
        let bytes: usize = writes.items().iter().map(entry_bytes).sum();
        let deletes = writes.items().iter().all(|write| write.value.is_none());
        let write = move |core: &mut Core| core.registry_write(writes);
        if deletes { self.change(bytes, write).await } else { self.grow(bytes, 0, write).await }
    }

    async fn log_append(&self, now: Now, log: &LogName, records: Append) -> Result<Vec<u64>, StoreError> {
        let log = log.clone();
        let bytes = records.values().iter().map(|value| value.len() + log.as_str().len() + 64).sum();
        self.grow(0, bytes, move |core| {
            let now = core.time.at(now);
            core.log_append(now, &log, records)
        })
        .await
    }

    async fn log_read(
        &self,
        log: &LogName,
        range: LogRange,
        limit: Limit,
    ) -> Result<Vec<LogRecord>, StoreError> {
        let log = log.clone();
        self.look(move |core| {
            let places = core.log_places(&log, range, limit.get());
            Later::Load(places.len(), Box::new(move |core: &Core| core.log_journal.log_records(&places)))
        })
        .await
    }

    async fn log_trim(&self, log: &LogName, horizon: Timestamp) -> Result<u64, StoreError> {
        let log = log.clone();
        self.change(SMALL_BYTES, move |core| core.log_trim(&log, horizon)).await
    }
}

fn entry_bytes(write: &redrive_store::Write) -> usize {
    write.key.name.as_str().len() + write.value.as_ref().map_or(0, bytes::Bytes::len) + 64
}
