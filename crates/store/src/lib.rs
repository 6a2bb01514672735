//! The port: what the running queue asks of whatever keeps it.
//!
//! [`Store`] speaks the verbs of the lifecycle, in batches with an outcome per item. Each verb's request and
//! outcome live in the file of that name; [`error`] says whether a retry helps, [`Capabilities`] what a store
//! cannot do. A backend is right when it passes `redrive-store-conformance`.
//!
//! Three rules hold for every method and are not repeated there:
//!
//! * A transition is one atomic write, guarded by the lease it ends. It happens or it does not.
//! * Nothing is answered before it is as durable as the store promises.
//! * Time is the `now` that was passed, or the store's own where the call says so, and in a queue, as one instance
//!   sees it, it never runs back: a `now` before the latest one seen counts as that one.
//!
//! Calls that run at the same time are in no order; what one call does, it does in the order of its items.

mod batch;
mod bulk;
mod capabilities;
mod clock;
mod count;
mod enqueue;
pub mod error;
mod expire;
mod filter;
pub mod json;
mod lease;
mod limit;
mod list;
mod lock;
mod log;
mod now;
mod queue;
mod registry;
mod settle;
mod signal;
mod store;
mod sweep;

pub use batch::{Batch, Item};
pub use bulk::{Bulk, BulkRefusal, Selection};
pub use capabilities::{Capabilities, Survives};
pub use clock::KnownClock;
pub use count::{CountBy, CountRow, Counts, FailureGroup, NextDue, QueueStats, StateCounts};
pub use enqueue::{EnqueueItem, EnqueueOutcome, EnqueueRefusal};
pub use error::{QueueError, QueueNotFound, RetryAdvice, StoreError};
pub use expire::ExpireRequest;
pub use filter::Filter;
pub use lease::{ClassFilter, LaneChoice, LeaseRequest, Leased, Pick};
pub use limit::Limit;
pub use list::{ListRequest, Page};
pub use lock::{LockClaim, LockToken};
pub use log::{Append, LogName, LogRange, LogRecord};
pub use now::Now;
pub use queue::{CreateQueue, DeleteQueue, PauseQueue, UpdateQueue};
pub use registry::{Entry, EntryKey, EntryKind, EntryName, Expect, Write, WriteOutcome, Writes};
pub use settle::{
    AckItem, Acked, BuryItem, ExtendItem, Judged, LeaseTarget, NackItem, ReleaseItem, Released, Settled,
};
pub use signal::{Heard, Listener, Notice, Signal};
pub use store::Store;
pub use sweep::{SweepRequest, Swept};
