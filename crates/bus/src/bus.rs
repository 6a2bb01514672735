//! The bus: a broker, what is known of topics and subscriptions, and the pumps that bring events to their targets.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use hashbrown::HashMap;
use redrive_broker::{Broker, pause};
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::Millis;
use tokio::task::JoinHandle;

use crate::config::BusConfig;
use crate::deliveries::Deliveries;
use crate::dispatch::{Handler, InFlight, Pumps};
use crate::error::BusError;
use crate::health::Health;
use crate::metrics::Metrics;
use crate::view::View;
use crate::webhook::Webhooks;

/// How often what other instances did is looked for, though they tell it.
const LOOK_AGAIN: Millis = Millis::from_secs(15);

/// What all handles of a bus share.
pub struct Shared {
    pub(crate) broker: Broker,
    pub(crate) config: BusConfig,
    view: RwLock<View>,
    /// Held by who brings the view up to date.
    pub(crate) refreshing: tokio::sync::Mutex<()>,
    /// Held by who changes topics or subscriptions here.
    pub(crate) changing: tokio::sync::Mutex<()>,
    pub(crate) webhooks: Option<Webhooks>,
    pub(crate) handlers: RwLock<HashMap<SubscriptionId, Arc<dyn Handler>>>,
    pub(crate) pumps: Mutex<Pumps>,
    pub(crate) in_flight: InFlight,
    pub(crate) deliveries: Deliveries,
    pub(crate) health: Health,
    pub(crate) metrics: Metrics,
}

/// A handle to the running bus.
#[derive(Clone)]
pub struct Bus(Arc<Shared>);

impl Deref for Bus {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bus").field("subscriptions", &self.view().len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("broker", &self.broker).finish_non_exhaustive()
    }
}

/// The work that goes on in the background; it ends when this is dropped or [`BusBackground::stop`] is called.
#[derive(Debug)]
pub struct BusBackground {
    bus: Bus,
    upkeep: JoinHandle<()>,
}

impl BusBackground {
    /// Ends the bus: nothing more is taken out, and what is under way has a while to end. What takes longer is given back
    /// unharmed. The broker goes on, and is stopped after this.
    pub async fn stop(self) {
        self.upkeep.abort();
        self.bus.stop_pumps().await;
    }
}

impl Drop for BusBackground {
    fn drop(&mut self) {
        self.upkeep.abort();
        self.bus.drop_pumps();
    }
}

impl Bus {
    /// Starts the bus over a broker.
    pub async fn start(broker: Broker, config: BusConfig) -> Result<(Self, BusBackground), BusError> {
        let webhooks = match &config.webhooks {
            Some(webhooks) => Some(Webhooks::new(webhooks.clone())?),
            None => None,
        };
        let metrics = Metrics::new(config.metric_labels_max);
        let bus = Self(Arc::new(Shared {
            broker,
            view: RwLock::default(),
            refreshing: tokio::sync::Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            webhooks,
            handlers: RwLock::default(),
            pumps: Mutex::default(),
            in_flight: InFlight::default(),
            deliveries: Deliveries::default(),
            health: Health::default(),
            metrics,
            config,
        }));
        bus.refresh().await?;
        bus.sync_pumps();
        bus.sync_relay().await;
        let kept = bus.clone();
        let upkeep = tokio::spawn(async move { kept.keep_fresh().await });
        Ok((bus.clone(), BusBackground { bus, upkeep }))
    }

    /// The broker underneath.
    pub fn broker(&self) -> &Broker {
        &self.broker
    }

    pub(crate) fn view(&self) -> RwLockReadGuard<'_, View> {
        self.view.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn view_mut(&self) -> RwLockWriteGuard<'_, View> {
        self.view.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The metrics as Prometheus reads them, to be added to the broker's.
    pub fn add_metrics(&self, text: &mut String) {
        self.metrics.add_to(text, &self.view());
    }

    /// Keeps what is known up to date, and forgets what topics need not keep any longer.
    async fn keep_fresh(&self) {
        loop {
            tokio::select! {
                () = self.broker.subscriptions_changed() => {}
                () = pause(LOOK_AGAIN) => {
                    self.sync_relay().await;
                    self.trim_retained().await;
                }
                () = self.broker.stopped() => return,
            }
            if let Err(error) = self.keep_up().await {
                tracing::warn!(%error, "what others did to topics and subscriptions is known later");
            }
        }
    }
}
