//! The trait.

use std::fmt::Debug;

use async_trait::async_trait;
use redrive_core::lifecycle::Reschedule;
use redrive_core::message::{Message, MessageId, Note};
use redrive_core::queue::{Queue, QueueName};
use redrive_core::receipt::ReceiptKey;
use redrive_core::time::{Millis, Timestamp};

use crate::{
    AckItem, Acked, Append, Batch, Bulk, BuryItem, Capabilities, CountBy, Counts, CreateQueue, DeleteQueue,
    EnqueueItem, EnqueueOutcome, Entry, EntryKey, EntryKind, EntryName, ExpireRequest, ExtendItem,
    FailureGroup, Filter, Judged, LeaseRequest, Leased, Limit, ListRequest, Listener, LockClaim, LogName,
    LogRange, LogRecord, NackItem, NextDue, Now, Page, PauseQueue, QueueError, QueueStats, ReleaseItem,
    Released, Selection, Settled, Signal, StoreError, SweepRequest, UpdateQueue, WriteOutcome, Writes, lock,
};

/// What keeps the queues. See the crate's page for the rules that hold for every method.
#[async_trait]
pub trait Store: Debug + Send + Sync {
    /// What this store can do beyond what all can.
    fn capabilities(&self) -> Capabilities;

    /// The key under which receipts of this store are made; the same for all instances and after every restart.
    async fn receipt_key(&self) -> Result<ReceiptKey, StoreError>;

    // Queues.

    /// Creates a queue.
    async fn create_queue(&self, now: Now, request: CreateQueue) -> Result<Queue, QueueError>;

    /// Changes the configuration of a queue; it acts on what is waiting at once.
    async fn update_queue(&self, now: Now, request: UpdateQueue) -> Result<Queue, QueueError>;

    /// Deletes a queue; by force, its messages and their leases with it.
    async fn delete_queue(&self, now: Now, request: DeleteQueue) -> Result<(), QueueError>;

    /// Pauses or resumes a queue or one fairness key of it. Gates lease, and nothing else.
    async fn pause_queue(&self, now: Now, request: PauseQueue) -> Result<Queue, QueueError>;

    /// A queue; `None` where there is none of that name.
    async fn get_queue(&self, name: &QueueName) -> Result<Option<Queue>, StoreError>;

    /// Queues by name, after the one given.
    async fn list_queues(&self, after: Option<&QueueName>, limit: Limit) -> Result<Vec<Queue>, StoreError>;

    // The life of a message.

    /// nothing → ready | delayed. Items may go to several queues.
    async fn enqueue(&self, now: Now, batch: Batch<EnqueueItem>) -> Result<Vec<EnqueueOutcome>, StoreError>;

    /// ready → leased. First ends what is overdue in the queue and lapses what is past its time to live, at most
    /// [`LEASE_SETTLES_MAX`](redrive_core::limits::LEASE_SETTLES_MAX) of each, and none that another instance is
    /// dealing with. What is over a lowered cap is not handed out; lapsing it is [`Store::lapse`]'s work.
    async fn lease(&self, now: Now, request: LeaseRequest) -> Result<Leased, QueueError>;

    /// leased → leased, with a later deadline; answers the deadline.
    async fn extend(&self, now: Now, batch: Batch<ExtendItem>)
    -> Result<Vec<Settled<Timestamp>>, StoreError>;

    /// leased → gone | done.
    async fn ack(&self, now: Now, batch: Batch<AckItem>) -> Result<Vec<Settled<Acked>>, StoreError>;

    /// leased → delayed | ready | dead, as the judge decides.
    async fn nack(
        &self,
        now: Now,
        batch: Batch<NackItem>,
        seed: u64,
    ) -> Result<Vec<Settled<Judged>>, StoreError>;

    /// leased → ready | delayed, with the attempt refunded. A message that has no delivery left lapses in the same
    /// step.
    async fn release(
        &self,
        now: Now,
        batch: Batch<ReleaseItem>,
    ) -> Result<Vec<Settled<Released>>, StoreError>;

    /// leased → dead.
    async fn bury(&self, now: Now, batch: Batch<BuryItem>) -> Result<Vec<Settled<Judged>>, StoreError>;

    /// leased → delayed | ready | dead, for leases whose deadline has passed, the most overdue first; ties by lease
    /// id.
    async fn expire(&self, now: Now, request: ExpireRequest) -> Result<Vec<Judged>, QueueError>;

    /// ready | delayed → dead: first messages whose time to live passed, the earliest first, then those over a cap
    /// that was lowered; ties by id.
    async fn lapse(&self, now: Now, request: SweepRequest) -> Result<Vec<Judged>, QueueError>;

    /// done | dead → gone, for messages beyond the queue's retention, the oldest first; answers how many.
    async fn retain(&self, now: Now, request: SweepRequest) -> Result<u64, QueueError>;

    /// ready ↔ delayed, or another priority.
    async fn reschedule(
        &self,
        now: Now,
        selection: Selection,
        change: Reschedule,
    ) -> Result<Bulk, QueueError>;

    /// any but leased → another queue.
    async fn move_to(&self, now: Now, selection: Selection, target: QueueName) -> Result<Bulk, QueueError>;

    /// dead → ready. Records who asked and why.
    async fn redrive(
        &self,
        now: Now,
        selection: Selection,
        by: Note,
        reason: Note,
    ) -> Result<Bulk, QueueError>;

    /// any but leased → gone; by force leased ones too, which fences their consumers.
    async fn discard(&self, now: Now, selection: Selection, force: bool) -> Result<Bulk, QueueError>;

    /// Discards whatever is in a queue, a step at a time.
    async fn purge(&self, now: Now, queue: QueueName, force: bool) -> Result<Bulk, QueueError> {
        self.discard(now, Selection::new(queue, Filter::default()), force).await
    }

    // Looking. None of these takes a lease or changes anything.

    /// A message; `None` where it is not in that queue.
    async fn get(&self, queue: &QueueName, id: MessageId) -> Result<Option<Message>, StoreError>;

    /// A page of messages that match.
    async fn list(&self, now: Now, request: ListRequest) -> Result<Page, QueueError>;

    /// How many messages there are by state and, where asked, by type, source and fairness key.
    async fn count(
        &self,
        now: Now,
        queue: &QueueName,
        by: CountBy,
        limit: Limit,
    ) -> Result<Counts, QueueError>;

    /// A queue at this moment.
    async fn stats(&self, now: Now, queue: &QueueName) -> Result<QueueStats, QueueError>;

    /// Groups of dead messages whose errors are alike, the largest first.
    async fn failure_groups(&self, queue: &QueueName, limit: Limit) -> Result<Vec<FailureGroup>, QueueError>;

    /// When time will next change something by itself, in one queue or in any.
    async fn next_due(&self, now: Now, queue: Option<&QueueName>) -> Result<NextDue, QueueError>;

    // What the layers above keep.

    /// An entry of the registry.
    async fn registry_get(&self, key: &EntryKey) -> Result<Option<Entry>, StoreError>;

    /// Entries of one kind by name, after the one given.
    async fn registry_list(
        &self,
        kind: EntryKind,
        after: Option<&EntryName>,
        limit: Limit,
    ) -> Result<Vec<Entry>, StoreError>;

    /// Writes and deletes entries, all or none, each only if it is as expected.
    async fn registry_write(&self, writes: Writes) -> Result<WriteOutcome, StoreError>;

    /// Appends records to a log, which is there from its first record on; answers their numbers.
    async fn log_append(&self, now: Now, log: &LogName, records: Append) -> Result<Vec<u64>, StoreError>;

    /// Records of a log, from either end.
    async fn log_read(
        &self,
        log: &LogName,
        range: LogRange,
        limit: Limit,
    ) -> Result<Vec<LogRecord>, StoreError>;

    /// Forgets records appended before `horizon`; answers how many can no longer be read.
    async fn log_trim(&self, log: &LogName, horizon: Timestamp) -> Result<u64, StoreError>;

    // Several instances on the same data, where `Capabilities::shared`; each is a store of its own, opened on its own.

    /// Tells the other instances. Told is what was handed over; nobody waits until it is heard, and it may be lost. It is
    /// not a part of what was written before it: who must not miss something looks, now and then.
    async fn tell(&self, signals: Vec<Signal>) -> Result<(), StoreError> {
        drop(signals);
        Ok(())
    }

    /// Hears what the other instances tell, and never what this one told itself. `None` where there are no others.
    fn listen(&self) -> Option<Box<dyn Listener>> {
        None
    }

    /// Takes a lock that nobody holds, or keeps it for longer; says whether the claim's token holds it now. It is free again once
    /// `lifetime` has passed without another call, by `now` or, where the server behind a store ends locks itself, by its clock.
    async fn hold_lock(
        &self,
        now: Timestamp,
        claim: &LockClaim,
        lifetime: Millis,
    ) -> Result<bool, StoreError> {
        lock::hold(self, now, claim, lifetime).await
    }

    /// Lets go of a lock, if the claim's token still holds it; says whether it did.
    async fn release_lock(&self, claim: &LockClaim) -> Result<bool, StoreError> {
        lock::release(self, claim).await
    }
}
