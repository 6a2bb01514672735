//! What a worker runs, and how.

use std::fmt;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tower::layer::util::{Identity, Stack};
use tower::{Layer, Service};

use super::body::{BadBody, FromMessage};
use super::context::Context;
use super::handler::{HandlerService, Job, Run, handler_fn};
use super::outcome::{IntoOutcome, Outcome};
use super::running::Running;
use crate::limits::{CONCURRENCY_MAX, LEASE_TIME_MAX, LEASE_TIME_MIN};
use crate::message::Lane;
use crate::transport::Transport;

/// Why a worker cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvalidWorker {
    /// The number of messages at a time is out of range.
    #[error("concurrency: must be from 1 to {CONCURRENCY_MAX}, not {0}")]
    Concurrency(u32),
    /// The lease time is out of range.
    #[error("lease_time: must be from {LEASE_TIME_MIN:?} to seven days, not {0:?}")]
    LeaseTime(Duration),
    /// The time of a handler is none.
    #[error("timeout: must be longer than nothing")]
    Timeout,
}

/// How a worker works.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) queue: String,
    pub(super) consumer: String,
    pub(super) concurrency: u32,
    pub(super) lease_time: Duration,
    pub(super) timeout: Option<Duration>,
    pub(super) grace: Duration,
    pub(super) lane: Lane,
    pub(super) types: Vec<String>,
    pub(super) sources: Vec<String>,
}

/// A handler for the messages of a queue, ready to be started.
///
/// ```no_run
/// # async fn example(client: redrive_client::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use redrive_client::{Context, Failure, Json, Worker};
///
/// #[derive(serde::Deserialize)]
/// struct Email {
///     to: String,
/// }
///
/// let worker = Worker::builder("emails").concurrency(16).handler(
///     |Json(email): Json<Email>, context: Context| async move {
///         if email.to.is_empty() {
///             return Err(Failure::bury("nobody to send it to"));
///         }
///         println!("attempt {} for {}", context.attempt(), email.to);
///         Ok(())
///     },
/// )?;
/// let running = client.run(worker);
/// // … until the program is told to end:
/// running.shutdown().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Worker {
    pub(super) settings: Settings,
    pub(super) run: Arc<dyn Run>,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Worker {
    /// A worker for this queue.
    pub fn builder(queue: impl Into<String>) -> WorkerBuilder {
        WorkerBuilder {
            settings: Settings {
                queue: queue.into(),
                consumer: "redrive-worker".to_owned(),
                concurrency: 1,
                lease_time: Duration::from_secs(30),
                timeout: None,
                grace: Duration::from_secs(30),
                lane: Lane::Shared,
                types: Vec::new(),
                sources: Vec::new(),
            },
            bad_body: BadBody::default(),
            layers: Identity::new(),
        }
    }

    /// Starts it. It runs until it is told to end, or is refused for good.
    pub fn start(self, transport: Arc<dyn Transport>) -> Running {
        Running::start(self, transport)
    }
}

/// Makes a [`Worker`].
#[derive(Debug, Clone)]
pub struct WorkerBuilder<L = Identity> {
    settings: Settings,
    bad_body: BadBody,
    layers: L,
}

impl<L> WorkerBuilder<L> {
    /// Under which name it takes messages.
    #[must_use]
    pub fn consumer(mut self, name: impl Into<String>) -> Self {
        self.settings.consumer = name.into();
        self
    }

    /// How many messages it works on at a time, 1 to 1000.
    #[must_use]
    pub fn concurrency(mut self, messages: u32) -> Self {
        self.settings.concurrency = messages;
        self
    }

    /// How long it leases a message for, 30 seconds where nothing is said, whatever the queue says. It is extended
    /// at a third of that for as long as the handler runs, so it is how long a message waits whose worker died.
    #[must_use]
    pub fn lease_time(mut self, time: Duration) -> Self {
        self.settings.lease_time = time;
        self
    }

    /// How long a handler may take. One that takes longer is dropped, and the attempt has failed.
    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Self {
        self.settings.timeout = Some(time);
        self
    }

    /// How long handlers may still take when the worker is told to end, 30 seconds where nothing is said. Those that take
    /// longer are dropped, and their messages given back.
    #[must_use]
    pub fn grace(mut self, time: Duration) -> Self {
        self.settings.grace = time;
        self
    }

    /// Takes messages of one lane only.
    #[must_use]
    pub fn lane(mut self, lane: Lane) -> Self {
        self.settings.lane = lane;
        self
    }

    /// Takes only messages of these types.
    #[must_use]
    pub fn types(mut self, types: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings.types = types.into_iter().map(Into::into).collect();
        self
    }

    /// Takes only messages of these sources.
    #[must_use]
    pub fn sources(mut self, sources: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings.sources = sources.into_iter().map(Into::into).collect();
        self
    }

    /// What becomes of a message whose body cannot be read; it is buried where nothing is said.
    #[must_use]
    pub fn bad_body(mut self, bad_body: BadBody) -> Self {
        self.bad_body = bad_body;
        self
    }

    /// Puts a layer around the handler, inside of those that were put there before.
    #[must_use]
    pub fn layer<N>(self, layer: N) -> WorkerBuilder<Stack<N, L>> {
        let Self { settings, bad_body, layers } = self;
        WorkerBuilder { settings, bad_body, layers: Stack::new(layer, layers) }
    }

    /// A worker with this handler: a function of a body and a [`Context`].
    pub fn handler<F, B, Fut>(self, function: F) -> Result<Worker, InvalidWorker>
    where
        F: Fn(B, Context) -> Fut + Send + Sync + 'static,
        B: FromMessage + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: IntoOutcome,
        L: Layer<HandlerService<F, B>>,
        L::Service: Service<Job, Response = Outcome> + Clone + Send + Sync + 'static,
        <L::Service as Service<Job>>::Error: Display,
        <L::Service as Service<Job>>::Future: Send,
    {
        let handler = handler_fn(function, self.bad_body);
        self.service(handler)
    }

    /// A worker with this service as its handler.
    pub fn service<S>(self, service: S) -> Result<Worker, InvalidWorker>
    where
        L: Layer<S>,
        L::Service: Service<Job, Response = Outcome> + Clone + Send + Sync + 'static,
        <L::Service as Service<Job>>::Error: Display,
        <L::Service as Service<Job>>::Future: Send,
    {
        self.settings.check()?;
        Ok(Worker { settings: self.settings, run: Arc::new(self.layers.layer(service)) })
    }
}

impl Settings {
    fn check(&self) -> Result<(), InvalidWorker> {
        if !(1..=CONCURRENCY_MAX).contains(&self.concurrency) {
            return Err(InvalidWorker::Concurrency(self.concurrency));
        }
        if !(LEASE_TIME_MIN..=LEASE_TIME_MAX).contains(&self.lease_time) {
            return Err(InvalidWorker::LeaseTime(self.lease_time));
        }
        if self.timeout.is_some_and(|time| time.is_zero()) {
            return Err(InvalidWorker::Timeout);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn what_is_out_of_range_is_refused_by_name() {
        let build = |builder: WorkerBuilder| builder.handler(async |_: Bytes, _| ()).map(drop).unwrap_err();
        let none = build(Worker::builder("q").concurrency(0));
        assert_eq!(none.to_string(), "concurrency: must be from 1 to 1000, not 0");
        let short = build(Worker::builder("q").lease_time(Duration::from_millis(1)));
        assert_eq!(short.to_string(), "lease_time: must be from 100ms to seven days, not 1ms");
        assert_eq!(build(Worker::builder("q").timeout(Duration::ZERO)), InvalidWorker::Timeout);
    }
}
