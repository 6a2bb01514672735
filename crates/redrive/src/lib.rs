//! Redrive inside your program: the same broker and event bus that the server runs, with no server.
//!
//! Open a directory, enqueue, run workers:
//!
//! ```
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use redrive::{Context, Json, Redrive, Worker};
//!
//! # let dir = tempfile::tempdir()?;
//! # let dir = dir.path();
//! let redrive = Redrive::open(dir).await?;
//! let (done, mut is_done) = tokio::sync::mpsc::channel(1);
//! let worker = Worker::builder("greetings").handler(move |Json(name): Json<String>, _: Context| {
//!     let done = done.clone();
//!     async move { done.send(format!("hello {name}")).await }
//! })?;
//! let running = redrive.run(worker);
//!
//! redrive.enqueue("greetings", "world").await?;
//! assert_eq!(is_done.recv().await.as_deref(), Some("hello world"));
//!
//! running.shutdown().await?;
//! redrive.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Or publish events, and have them brought to whoever subscribed:
//!
//! ```
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use redrive::{EventContext, Json, Redrive};
//!
//! let redrive = Redrive::in_memory().await?;
//! let bus = redrive.bus();
//! let (done, mut is_done) = tokio::sync::mpsc::channel(1);
//! bus.subscribe("order.*", move |Json(number): Json<u64>, event: EventContext| {
//!     let done = done.clone();
//!     async move { done.send(format!("{} {number}", event.topic())).await }
//! })
//! .await?;
//!
//! bus.publish("order.created", &7).await?;
//! assert_eq!(is_done.recv().await.as_deref(), Some("order.created 7"));
//! redrive.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Redrive`] is the broker, [`EventBus`] the way to its event bus (`bus`), [`webhook`] what a receiver needs. [`Worker`] is the one of the client for servers, and runs there as it does here: `local` is
//! the line between the two. `open` puts store, clock and broker together, `convert` stands between what is written here
//! and the domain, `dead` is the way back from the dead. With the feature `test-util`, `testing` has a broker whose clock a test moves.

mod bus;
mod clock;
mod convert;
mod dead;
mod error;
mod local;
mod open;
#[cfg(feature = "test-util")]
pub mod testing;
pub mod webhook;

pub use bus::{
    Breaker, BreakerSettings, BreakerState, DeadEvent, Delivered, EventBus, EventContext, NewEvent,
    Published, ReplayFrom, Subscribe, Subscription, SubscriptionInfo, ToHandler, ToQueue, ToWebhook, Topic,
    TopicBuilder, WebhookSubscription,
};
pub use dead::{DeadLetter, Which};
pub use error::Error;
pub use open::{Durability, OpenOptions, Redrive};
pub use redrive_client::{
    BadBody, Context, Enqueued, Failure, FromMessage, IntoOutcome, Jitter, Job, Json, Lane, Message,
    NewMessage, NotExtended, Outcome, QueueSettings, RetrySettings, Running, Stats, Worker, WorkerBuilder,
    WorkerError,
};
pub use redrive_core::message::State;
pub use webhook::WebhookOptions;

/// The guide's programs compile, and the first of them runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/rust.md")]
pub struct Guide;
