//! What a history asks of a store, and what it is answered.

use futures::FutureExt;
use futures::future::BoxFuture;
use redrive_core::lifecycle::Reschedule;
use redrive_core::message::Note;
use redrive_core::queue::{Queue, QueueName};
use redrive_core::time::Timestamp;
use redrive_store::{
    AckItem, Acked, Append, Batch, Bulk, BuryItem, CreateQueue, DeleteQueue, EnqueueItem, EnqueueOutcome,
    ExpireRequest, ExtendItem, Judged, LeaseRequest, Leased, LogName, NackItem, Now, PauseQueue, QueueError,
    ReleaseItem, Released, Selection, Settled, Store, StoreError, SweepRequest, UpdateQueue, WriteOutcome,
    Writes,
};

/// One call. Receipts and versions in it are those of the store under test.
#[derive(Debug, Clone)]
pub(crate) enum Command {
    Create(CreateQueue),
    Update(UpdateQueue),
    Delete(DeleteQueue),
    Pause(PauseQueue),
    Enqueue(Batch<EnqueueItem>),
    Lease(LeaseRequest),
    Ack(Batch<AckItem>),
    Nack(Batch<NackItem>, u64),
    Extend(Batch<ExtendItem>),
    Release(Batch<ReleaseItem>),
    Bury(Batch<BuryItem>),
    Expire(ExpireRequest),
    Lapse(SweepRequest),
    Retain(SweepRequest),
    Reschedule(Selection, Reschedule),
    Move(Selection, QueueName),
    Redrive(Selection),
    Discard(Selection, bool),
    Register(Writes),
    Append(LogName, Append),
    Trim(LogName, Timestamp),
}

impl Command {
    /// Whether a disk that is full must still take it.
    pub(crate) fn goes_on_when_full(&self) -> bool {
        matches!(
            self,
            Self::Lease(_)
                | Self::Ack(_)
                | Self::Nack(..)
                | Self::Extend(_)
                | Self::Release(_)
                | Self::Bury(_)
                | Self::Discard(..)
        )
    }

    /// Asks a store.
    pub(crate) fn ask(self, store: &dyn Store, now: Now) -> BoxFuture<'_, Outcome> {
        async move {
            Ok(match self {
                Self::Create(request) => Answer::Queue(Box::new(store.create_queue(now, request).await?)),
                Self::Update(request) => Answer::Queue(Box::new(store.update_queue(now, request).await?)),
                Self::Delete(request) => {
                    store.delete_queue(now, request).await?;
                    Answer::Deleted
                }
                Self::Pause(request) => Answer::Queue(Box::new(store.pause_queue(now, request).await?)),
                Self::Enqueue(batch) => Answer::Enqueued(store.enqueue(now, batch).await?),
                Self::Lease(request) => Answer::Leased(store.lease(now, request).await?),
                Self::Ack(batch) => Answer::Acked(store.ack(now, batch).await?),
                Self::Nack(batch, seed) => Answer::Judged(store.nack(now, batch, seed).await?),
                Self::Extend(batch) => Answer::Extended(store.extend(now, batch).await?),
                Self::Release(batch) => Answer::Released(store.release(now, batch).await?),
                Self::Bury(batch) => Answer::Judged(store.bury(now, batch).await?),
                Self::Expire(request) => Answer::Swept(store.expire(now, request).await?),
                Self::Lapse(request) => Answer::Swept(store.lapse(now, request).await?),
                Self::Retain(request) => Answer::Count(store.retain(now, request).await?),
                Self::Reschedule(selection, change) => {
                    Answer::Bulk(store.reschedule(now, selection, change).await?)
                }
                Self::Move(selection, target) => Answer::Bulk(store.move_to(now, selection, target).await?),
                Self::Redrive(selection) => {
                    let note = |text| Note::new(text).expect("a good note");
                    Answer::Bulk(store.redrive(now, selection, note("operator"), note("why not")).await?)
                }
                Self::Discard(selection, force) => Answer::Bulk(store.discard(now, selection, force).await?),
                Self::Register(writes) => Answer::Wrote(store.registry_write(writes).await?),
                Self::Append(log, records) => Answer::Numbers(store.log_append(now, &log, records).await?),
                Self::Trim(log, horizon) => Answer::Count(store.log_trim(&log, horizon).await?),
            })
        }
        .boxed()
    }
}

/// What a store said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    Queue(Box<Queue>),
    Deleted,
    Enqueued(Vec<EnqueueOutcome>),
    Leased(Leased),
    Acked(Vec<Settled<Acked>>),
    Judged(Vec<Settled<Judged>>),
    Extended(Vec<Settled<Timestamp>>),
    Released(Vec<Settled<Released>>),
    Swept(Vec<Judged>),
    Count(u64),
    Bulk(Bulk),
    Wrote(WriteOutcome),
    Numbers(Vec<u64>),
}

impl Answer {
    /// Without what a store chooses for itself: versions, numbers, and where a step ends.
    pub(crate) fn plain(self) -> Self {
        match self {
            Self::Queue(queue) => Self::Queue(Box::new(Queue { version: 0, ..*queue })),
            Self::Swept(mut judged) => {
                judged.sort_by(|a, b| (&a.queue, a.message).cmp(&(&b.queue, b.message)));
                Self::Swept(judged)
            }
            Self::Bulk(bulk) => Self::Bulk(Bulk { next: None, ..bulk }),
            Self::Wrote(WriteOutcome::Committed(versions)) => {
                let written = versions.into_iter().map(|version| version.map(|_| 0));
                Self::Wrote(WriteOutcome::Committed(written.collect()))
            }
            Self::Wrote(WriteOutcome::Conflict { index, actual }) => {
                Self::Wrote(WriteOutcome::Conflict { index, actual: actual.map(|_| 0) })
            }
            Self::Numbers(numbers) => Self::Numbers(vec![0; numbers.len()]),
            other => other,
        }
    }
}

/// Why there is no answer, by its stable word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A rule says no.
    Refused(&'static str),
    /// The store failed.
    Store(&'static str, String),
}

/// What became of a call.
pub(crate) type Outcome = Result<Answer, Failure>;

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error.code(), error.to_string())
    }
}

impl From<QueueError> for Failure {
    fn from(error: QueueError) -> Self {
        match error {
            QueueError::Store(error) => error.into(),
            other => Self::Refused(other.code()),
        }
    }
}

/// What an outcome says about whether the call happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sureness {
    /// It was decided, and the answer says how.
    Decided,
    /// It did not happen.
    Nothing,
    /// It did not happen, and nothing will any more.
    Stopped,
    /// It may have happened.
    Unknown,
}

pub(crate) fn sureness(outcome: &Outcome) -> Sureness {
    match outcome {
        Ok(_) | Err(Failure::Refused(_)) => Sureness::Decided,
        Err(Failure::Store("OUTCOME_UNKNOWN", _)) => Sureness::Unknown,
        Err(Failure::Store("STORE_STOPPED", _)) => Sureness::Stopped,
        Err(Failure::Store(..)) => Sureness::Nothing,
    }
}
