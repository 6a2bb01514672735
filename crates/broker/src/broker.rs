//! The broker: a store, and everything that runs beside it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use redrive_core::receipt::ReceiptKey;
use redrive_core::time::Timestamp;
use redrive_store::{Now, Store};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::chance::Chance;
use crate::clock::Clock;
use crate::config::BrokerConfig;
use crate::error::BrokerError;
use crate::events::{Events, Watch};
use crate::history::Rounds;
use crate::instances::Peers;
use crate::lease::Polls;
use crate::metrics::Metrics;
use crate::numbers::{Deaths, Full, Looks};
use crate::operations::Operations;
use crate::queues::Queues;
use crate::sweep::Sweeper;
use crate::trace::Traces;

/// What all handles of a broker share.
#[derive(Debug)]
pub struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) config: BrokerConfig,
    pub(crate) receipts: ReceiptKey,
    pub(crate) queues: Queues,
    pub(crate) events: Arc<Events>,
    pub(crate) metrics: Metrics,
    pub(crate) chance: Chance,
    pub(crate) polls: Polls,
    pub(crate) operations: Operations,
    pub(crate) traces: Option<Traces>,
    /// The other instances; `None` where the store has one owner.
    pub(crate) peers: Option<Peers>,
    /// A lease or a message may be due earlier than the sweeper thinks.
    pub(crate) sweep_sooner: Notify,
    /// What a test holds the sweepers by.
    #[cfg(feature = "test-clock")]
    pub(crate) sweeps: crate::sweep::hold::Hold,
    /// When the broker started.
    pub(crate) started_at: Timestamp,
    pub(crate) rounds: Rounds,
    pub(crate) looks: Looks,
    pub(crate) deaths: Deaths,
    pub(crate) full: Full,
    stopping: watch::Sender<bool>,
}

/// A handle to the running broker.
#[derive(Clone)]
pub struct Broker(Arc<Shared>);

impl Deref for Broker {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broker").field("store", &self.store).finish_non_exhaustive()
    }
}

/// The work that goes on in the background; it ends when this is dropped or [`Background::stop`] is called.
#[derive(Debug)]
pub struct Background {
    broker: Broker,
    tasks: JoinSet<()>,
}

impl Background {
    /// Ends the broker: polls are answered with nothing, nothing more is handed out, and operations keep where they
    /// are. What consumers hold they can still settle, now and after the next start.
    pub async fn stop(mut self) {
        self.broker.stopping.send_replace(true);
        for live in self.broker.queues.all() {
            live.waiters.wake_all();
        }
        self.broker.operations.rest().await;
        self.tasks.shutdown().await;
        self.broker.leave_peers().await;
    }
}

impl Broker {
    /// Starts the broker over a store.
    pub async fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        config: BrokerConfig,
    ) -> Result<(Self, Background), BrokerError> {
        let receipts = store.receipt_key().await?;
        let peers = if store.capabilities().shared { Some(Peers::new()?) } else { None };
        let started_at = clock.now();
        let broker = Self(Arc::new(Shared {
            receipts,
            started_at,
            rounds: Rounds::new(started_at),
            looks: Looks::default(),
            deaths: Deaths::default(),
            full: Full::default(),
            clock,
            queues: Queues::default(),
            events: Arc::new(Events::new(config.events_kept, peers.as_ref().map(Peers::outbox))),
            metrics: Metrics::new(config.metric_labels_max),
            chance: Chance::new()?,
            polls: Polls::default(),
            operations: Operations::default(),
            traces: config.traces.as_ref().map(Traces::new),
            peers,
            sweep_sooner: Notify::new(),
            #[cfg(feature = "test-clock")]
            sweeps: crate::sweep::hold::Hold::default(),
            stopping: watch::Sender::new(false),
            store,
            config,
        }));
        broker.resume_operations().await?;
        let mut tasks = JoinSet::new();
        let events = Arc::clone(&broker.events);
        tasks.spawn(async move { events.run().await });
        broker.join_peers(&mut tasks);
        for sweeper in Sweeper::of(&broker) {
            let broker = broker.clone();
            tasks.spawn(async move { broker.keep_sweeping(sweeper).await });
        }
        let sampled = broker.clone();
        tasks.spawn(async move { sampled.keep_history().await });
        Ok((broker.clone(), Background { broker, tasks }))
    }

    /// The time that a call passes to the store.
    pub(crate) fn at(&self) -> Now {
        if self.store.capabilities().store_clock { Now::Store } else { Now::At(self.clock.now()) }
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns when it is `at`, or later.
    pub async fn until(&self, at: Timestamp) {
        self.clock.until(at).await;
    }

    /// What was set.
    pub fn config(&self) -> &BrokerConfig {
        &self.config
    }

    /// The store underneath, for looking.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Whether the broker ends.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Completes when the broker ends.
    pub async fn stopped(&self) {
        let mut stopping = self.stopping.subscribe();
        // The sender is held by the broker itself.
        drop(stopping.wait_for(|stopping| *stopping).await);
    }

    /// Reads events from behind `after`; without one, from now on.
    pub fn watch(&self, after: Option<u64>) -> Watch {
        self.events.watch(after)
    }

    /// The metrics as Prometheus reads them.
    pub async fn metrics_text(&self) -> Result<String, BrokerError> {
        self.measure_depth().await?;
        self.metrics.set_store(&self.store.capabilities());
        Ok(self.metrics.encode())
    }

    /// How the retries of each message type went since the broker started, by type.
    pub fn retries(&self) -> Vec<(String, crate::RetryShare)> {
        self.metrics.retries()
    }
}
