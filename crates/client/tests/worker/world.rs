//! A server on a port, a line to it, and a client.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redrive_broker::{Access, Background, Broker, BrokerConfig, Gate, ManualClock};
use redrive_bus::{Bus, BusBackground, BusConfig};
use redrive_client::{Client, Failure, Message, NewMessage, Outcome, QueueSettings, Running, Worker};
use redrive_core::message::{Message as Kept, State};
use redrive_core::receipt::ReceiptKey;
use redrive_core::time::{Millis, Timestamp};
use redrive_store_memory::{MemoryStore, Options};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::proxy::Proxy;

pub(crate) const QUEUE: &str = "orders";

/// A server, and what is around it.
pub(crate) struct World {
    pub(crate) broker: Broker,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) proxy: Proxy,
    pub(crate) client: Client,
    _background: (Background, BusBackground),
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::with(Access::Anyone, None).await
    }

    pub(crate) async fn with(access: Access, token: Option<&str>) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_800_000_000_000)));
        let store = MemoryStore::new(Options::new(ReceiptKey::new([7; 32])));
        let config = BrokerConfig::default();
        let started = Broker::start(Arc::new(store), Arc::<ManualClock>::clone(&clock), config).await;
        let (broker, background) = started.unwrap();
        let gate = Gate::new(broker.clone(), access).await.unwrap();
        let (bus, deliveries) = Bus::start(broker.clone(), BusConfig::default()).await.unwrap();
        let app = redrive_server::http::router(redrive_server::http::Api::new(gate.clone(), bus.clone()));
        let app = redrive_server::grpc::add_to(app, gate, bus).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Proxy::to(listener.local_addr().unwrap()).await;
        tokio::spawn(async move { axum::serve(listener, app).await });
        let builder = Client::builder(format!("http://{}", proxy.address));
        let client = match token {
            Some(token) => builder.token(token).build().unwrap(),
            None => builder.build().unwrap(),
        };
        Self { broker, clock, proxy, client, _background: (background, deliveries) }
    }

    /// With a queue whose retries come a minute later.
    pub(crate) async fn with_queue() -> Self {
        let world = Self::start().await;
        let settings = QueueSettings::default().base_delay(Duration::from_mins(1));
        world.client.create_queue(QUEUE, settings).await.unwrap();
        world
    }

    pub(crate) fn advance(&self, time: Duration) {
        self.clock.advance(Millis::new(u64::try_from(time.as_millis()).unwrap()));
    }

    pub(crate) async fn enqueue(&self, body: &str) -> String {
        self.client.enqueue(QUEUE, NewMessage::new(body.to_owned())).await.unwrap().id
    }

    /// A message as the store has it; `None` where it is gone.
    pub(crate) async fn kept(&self, id: &str) -> Option<Kept> {
        self.broker.store().get(&QUEUE.parse().unwrap(), id.parse().unwrap()).await.unwrap()
    }

    /// Waits until the broker's state is as it should be; looks again whenever something happened.
    pub(crate) async fn until(&self, id: &str, is: impl Fn(Option<&Kept>) -> bool) -> Option<Kept> {
        let mut events = self.broker.watch(None);
        loop {
            let kept = self.kept(id).await;
            if is(kept.as_ref()) {
                return kept;
            }
            drop(events.next().await);
        }
    }

    /// Waits until a message is in a state.
    pub(crate) async fn until_state(&self, id: &str, state: State) -> Kept {
        let now = || self.broker.now();
        self.until(id, |kept| kept.is_some_and(|kept| kept.state(now()) == state)).await.unwrap()
    }

    /// Waits until a message is gone: it was acked.
    pub(crate) async fn until_gone(&self, id: &str) {
        self.until(id, |kept| kept.is_none()).await;
    }

    /// Runs one handler for one message, and answers what the store has of it when its lease has ended.
    pub(crate) async fn one(&self, body: &str, worker: Worker) -> Option<Kept> {
        let id = self.enqueue(body).await;
        let running = self.client.run(worker);
        let ended = |kept: Option<&Kept>| {
            kept.is_none_or(|kept| kept.progress.deliveries > 0 && kept.lease().is_none())
        };
        let kept = self.until(&id, ended).await;
        running.shutdown().await.unwrap();
        kept
    }
}

/// A handler that a test leads: it tells that it has begun, and ends as it is told to.
#[derive(Clone)]
pub(crate) struct Led {
    begun: mpsc::Sender<Begun>,
    at_once: Arc<AtomicUsize>,
    pub(crate) at_once_max: Arc<AtomicUsize>,
}

/// A handler that has begun.
pub(crate) struct Begun {
    pub(crate) message: Message,
    pub(crate) context: redrive_client::Context,
    pub(crate) end: tokio::sync::oneshot::Sender<Outcome>,
    /// Closed when the handler is gone.
    pub(crate) gone: tokio::sync::oneshot::Receiver<()>,
}

/// Counts handlers that run.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Led {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Begun>) {
        let (begun, receiver) = mpsc::channel(64);
        (Self { begun, at_once: Arc::default(), at_once_max: Arc::default() }, receiver)
    }

    pub(crate) async fn handle(self, context: redrive_client::Context) -> Outcome {
        let (end, ended) = tokio::sync::oneshot::channel();
        let (_alive, gone) = tokio::sync::oneshot::channel();
        let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        let _counted = Counted(Arc::clone(&self.at_once));
        self.at_once_max.fetch_max(now, Ordering::SeqCst);
        let begun = Begun { message: context.message().clone(), context, end, gone };
        self.begun.send(begun).await.map_err(|_| Failure::retry("the test is over"))?;
        match ended.await {
            Ok(outcome) => outcome,
            // The test does not care how it ends.
            Err(_) => std::future::pending().await,
        }
    }

    /// A worker with this handler.
    pub(crate) fn worker(
        &self,
        build: impl FnOnce(redrive_client::WorkerBuilder) -> redrive_client::WorkerBuilder,
    ) -> Worker {
        let led = self.clone();
        let builder = build(Worker::builder(QUEUE));
        builder.handler(move |_: bytes::Bytes, context| led.clone().handle(context)).unwrap()
    }

    pub(crate) fn run(
        &self,
        world: &World,
        build: impl FnOnce(redrive_client::WorkerBuilder) -> redrive_client::WorkerBuilder,
    ) -> Running {
        world.client.run(self.worker(build))
    }
}
