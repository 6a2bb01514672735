//! The broker in this process: opened, used, closed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use redrive_broker::{Background, Broker, BrokerConfig, BrokerError, Clock};
use redrive_bus::BusConfig;
use redrive_bus::webhook::WebhookConfig;
use redrive_client::{Enqueued, NewMessage, QueueSettings, Running, Stats, Worker};
use redrive_core::message::{MessageId, State};
use redrive_core::receipt::ReceiptKey;
use redrive_store::{CreateQueue, DeleteQueue, EnqueueOutcome, Store, UpdateQueue};
use redrive_store_embedded::EmbeddedStore;
use redrive_store_memory::MemoryStore;
use serde::Serialize;
use tokio::sync::Mutex;

use crate::bus::{EventBus, Slot};
use crate::clock::{EmbeddedClock, WallClock};
use crate::convert;
use crate::error::Error;
use crate::local::Local;
use crate::webhook::WebhookOptions;

pub use redrive_store_embedded::Durability;

/// How long whoever still uses the store may take to let go of it when it is closed.
const LET_GO: Duration = Duration::from_secs(5);

/// How a directory is opened.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// What an answer waits for; on the disk, where nothing is said.
    pub durability: Durability,
    /// Whether a queue comes into being by the first message or worker for it; it does, where nothing is said.
    pub auto_create: bool,
    /// How the event bus calls webhooks; to public addresses only, where nothing is said. `None` is not at all.
    pub webhooks: Option<WebhookOptions>,
    /// How long handlers of events may still take when it is closed; 5 seconds, where nothing is said. What takes longer is
    /// dropped, and its events are given back.
    pub grace: Duration,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Sync,
            auto_create: true,
            webhooks: Some(WebhookOptions::default()),
            grace: Duration::from_secs(5),
        }
    }
}

/// A broker in this process. Clones are handles to the same.
#[derive(Debug, Clone)]
pub struct Redrive {
    /// Goes before its broker.
    bus: Arc<Slot>,
    broker: Broker,
    background: Arc<Mutex<Option<Background>>>,
    /// Whose end is waited for.
    store: Option<Arc<EmbeddedStore>>,
}

impl Redrive {
    /// Opens a directory, which is made where it is not there. One process owns it at a time.
    pub async fn open(dir: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(dir, OpenOptions::default()).await
    }

    /// The same with options.
    pub async fn open_with(dir: impl AsRef<Path>, options: OpenOptions) -> Result<Self, Error> {
        let config = BrokerConfig { auto_create: options.auto_create, ..BrokerConfig::default() };
        let webhooks = options.webhooks.map(WebhookOptions::into_config).transpose()?;
        let bus = BusConfig { webhooks, grace: convert::millis(options.grace), ..BusConfig::default() };
        let settings = redrive_store_embedded::Options {
            defaults: config.defaults.clone(),
            durability: options.durability,
            ..redrive_store_embedded::Options::default()
        };
        let dir = dir.as_ref().to_owned();
        // It reads what is there.
        let opened = tokio::task::spawn_blocking(move || EmbeddedStore::open(dir, settings)).await;
        let store = Arc::new(opened.map_err(|error| BrokerError::from(unknown(error)))??);
        let clock = Arc::new(EmbeddedClock(store.clock()));
        let mut redrive = Self::start(Arc::clone(&store) as Arc<dyn Store>, clock, config, bus).await?;
        redrive.store = Some(store);
        Ok(redrive)
    }

    /// A broker that forgets everything when it is dropped.
    pub async fn in_memory() -> Result<Self, Error> {
        Self::in_memory_at(Arc::new(WallClock)).await
    }

    pub(crate) async fn in_memory_at(clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(BrokerError::from)?;
        let config = BrokerConfig { auto_create: true, ..BrokerConfig::default() };
        let mut options = redrive_store_memory::Options::new(ReceiptKey::new(key));
        options.defaults = config.defaults.clone();
        let bus = BusConfig { webhooks: Some(WebhookConfig::default()), ..BusConfig::default() };
        Self::start(Arc::new(MemoryStore::new(options)), clock, config, bus).await
    }

    async fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        config: BrokerConfig,
        bus: BusConfig,
    ) -> Result<Self, Error> {
        let (broker, background) = Broker::start(store, clock, config).await?;
        let bus = Arc::new(Slot::new(broker.clone(), bus).await?);
        Ok(Self { bus, broker, background: Arc::new(Mutex::new(Some(background))), store: None })
    }

    /// The way to the event bus. It is there without being asked for, and costs nothing where nobody does.
    pub fn bus(&self) -> EventBus {
        EventBus::new(&self.bus)
    }

    pub(crate) fn broker(&self) -> &Broker {
        &self.broker
    }

    /// Enqueues something that can be written as JSON. It is durable, as far as was asked for, when this returns.
    pub async fn enqueue<T: Serialize + ?Sized>(&self, queue: &str, body: &T) -> Result<Enqueued, Error> {
        let message = NewMessage::json(body).map_err(|error| Error::Body(error.to_string()))?;
        self.enqueue_message(queue, message).await
    }

    /// Enqueues a message with whatever is to be said of it.
    pub async fn enqueue_message(&self, queue: &str, message: NewMessage) -> Result<Enqueued, Error> {
        let message = convert::new_message(queue, message)?;
        let outcome = self.broker.enqueue(vec![message], false).await?.pop();
        match outcome.transpose()? {
            Some(EnqueueOutcome::Enqueued { id, .. }) => {
                Ok(Enqueued { id: id.to_string(), duplicate: false })
            }
            Some(EnqueueOutcome::Duplicate { id }) => Ok(Enqueued { id: id.to_string(), duplicate: true }),
            Some(EnqueueOutcome::Refused(refusal)) => Err(refusal.into()),
            Some(EnqueueOutcome::Aborted) | None => Err(BrokerError::from(unknown("no answer")).into()),
        }
    }

    /// Makes a queue with settings of its own.
    pub async fn create_queue(&self, name: &str, settings: QueueSettings) -> Result<(), Error> {
        let request = CreateQueue { name: name.parse()?, config: convert::config(settings)? };
        self.broker.create_queue(request).await?;
        Ok(())
    }

    /// Changes the settings of a queue: what is not set follows the defaults again.
    pub async fn update_queue(&self, name: &str, settings: QueueSettings) -> Result<(), Error> {
        let config = convert::config(settings)?;
        self.broker.update_queue(UpdateQueue { name: name.parse()?, config, expected: None }).await?;
        Ok(())
    }

    /// Deletes a queue; by force, its messages with it.
    pub async fn delete_queue(&self, name: &str, force: bool) -> Result<(), Error> {
        self.broker.delete_queue(DeleteQueue { name: name.parse()?, force }).await?;
        Ok(())
    }

    /// What is in a queue.
    pub async fn stats(&self, queue: &str) -> Result<Stats, Error> {
        Ok(convert::stats(&self.broker.stats(&queue.parse()?).await?))
    }

    /// In which state a message is; `None` where it is gone, because it is done or was discarded.
    pub async fn state(&self, queue: &str, id: &str) -> Result<Option<State>, Error> {
        let id: MessageId = id.parse()?;
        match self.broker.get(&queue.parse()?, id).await {
            Ok(message) => Ok(Some(message.state(self.broker.now()))),
            Err(BrokerError::MessageNotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Starts a worker.
    pub fn run(&self, worker: Worker) -> Running {
        worker.start(Arc::new(Local::new(self.broker.clone())))
    }

    /// Ends the event bus, whose handlers have a grace, then the broker, and gets everything onto the disk. Workers are shut down before. What they hold after this they
    /// can settle when the directory was opened again, as long as nobody else got it meanwhile.
    pub async fn close(self) -> Result<(), Error> {
        self.bus.close().await;
        if let Some(background) = self.background.lock().await.take() {
            background.stop().await;
        }
        let Self { bus, broker, background, store } = self;
        drop((bus, broker, background));
        let Some(mut store) = store else { return Ok(()) };
        let end = tokio::time::Instant::now() + LET_GO;
        loop {
            match Arc::try_unwrap(store) {
                Ok(store) => {
                    let closed = tokio::task::spawn_blocking(move || store.close()).await;
                    return Ok(closed.map_err(|error| BrokerError::from(unknown(error)))??);
                }
                Err(used) if tokio::time::Instant::now() < end => store = used,
                Err(_) => return Err(Error::InUse),
            }
            // Calls that were under way end by themselves.
            redrive_broker::pause(redrive_core::time::Millis::new(1)).await;
        }
    }
}

fn unknown(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> redrive_store::StoreError {
    redrive_store::StoreError::OutcomeUnknown(cause.into())
}
