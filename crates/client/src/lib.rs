//! The Rust client of Redrive, and the worker.
//!
//! * [`Client`] talks to a server over gRPC: it connects by itself, waits longer after every failure, and repeats what is
//!   safe to repeat. [`NewMessage`], [`QueueSettings`] and [`Message`] are what goes in and comes out.
//! * [`Worker`] runs a handler for every message of a queue: it extends leases while handlers run, cancels them where a
//!   lease is lost, and gives back what it holds when it ends. [`Context`] is what a handler knows of its message,
//!   [`Failure`] what it can say beside "done".
//! * [`Transport`] is what a worker needs of a broker. The client is one; so is the broker that the crate `redrive` runs
//!   inside a program.
//!
//! Errors are a struct for each fact and an enum for each operation. `is_retryable` says whether the same call may work
//! later, and [`OutcomeUnknown`] is never told as a failure.

mod backoff;
mod client;
mod connect;
mod error;
mod events;
mod grpc;
mod limits;
mod message;
mod queue;
mod settle;
mod transport;
mod worker;

pub use client::{Client, Enqueued, LeaseOptions};
pub use connect::ClientBuilder;
pub use error::{
    CallError, ConnectError, EnqueueError, Forbidden, InvalidRequest, LeaseError, LeaseLost, NoSuchLease,
    OutcomeUnknown, QueueError, QueueNotFound, Refused, Rejected, SettleError, Unauthenticated, Unreachable,
};
pub use events::{Event, Events};
pub use limits::{
    CHECKPOINT_BYTES_MAX, CONCURRENCY_MAX, DELAY_MAX, ERROR_BYTES_MAX, LEASE_TIME_MAX, LEASE_TIME_MIN,
};
pub use message::{Lane, Message, NewMessage};
pub use queue::{Jitter, Queue, QueueSettings, RetrySettings, Stats};
pub use settle::{Refusal, Settle, Settled, Verdict};
pub use transport::{Ask, Heard, Line, Say, Transport};
pub use worker::{
    BadBody, Context, Failure, FromMessage, HandlerService, IntoOutcome, InvalidWorker, Job, Json,
    NotExtended, Outcome, Running, Worker, WorkerBuilder, WorkerError, handler_fn,
};
