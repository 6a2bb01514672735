//! The bus on every store that keeps something: on the journal, over the end of a process; on PostgreSQL, Redis and a cluster of
//! Redis, by two instances that know nothing of each other. Time is the real one here; what is waited for is a signal.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use redrive_broker::{Background, Broker, BrokerConfig, Clock, pause};
use redrive_bus::{
    Bus, BusBackground, BusConfig, Dispatch, HandlerFailure, Incoming, NewEvent, NewSubscription, NewTarget,
    SubscriptionSettings, TopicConfig,
};
use redrive_core::message::{Body, State};
use redrive_core::policy::RetryOverride;
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::Store;
use redrive_store_embedded::EmbeddedStore;
use redrive_store_postgres::PostgresStore;
use redrive_store_redis::RedisStore;
use tokio::sync::mpsc;

/// The time of whatever store it is.
struct StoreTime(Box<dyn Fn() -> Timestamp + Send + Sync>);

impl std::fmt::Debug for StoreTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoreTime")
    }
}

#[async_trait]
impl Clock for StoreTime {
    fn now(&self) -> Timestamp {
        (self.0)()
    }

    async fn until(&self, at: Timestamp) {
        while self.now() < at {
            pause(at.since(self.now())).await;
        }
    }
}

struct Instance {
    bus: Bus,
    broker: Broker,
    background: (BusBackground, Background),
}

impl Instance {
    async fn new(store: Arc<dyn Store>, now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        let clock = Arc::new(StoreTime(Box::new(now)));
        let (broker, background) = Broker::start(store, clock, BrokerConfig::default()).await.unwrap();
        let (bus, upkeep) = Bus::start(broker.clone(), BusConfig::default()).await.unwrap();
        Self { bus, broker, background: (upkeep, background) }
    }

    async fn stop(self) {
        self.background.0.stop().await;
        self.background.1.stop().await;
    }

    async fn subscribe(&self, name: &str, pattern: &str) {
        let base_delay = Some(Millis::new(20));
        let retry = RetryOverride { base_delay, ..RetryOverride::default() };
        let new = NewSubscription {
            id: Some(id(name)),
            settings: SubscriptionSettings { retry, ..SubscriptionSettings::new(pattern.parse().unwrap()) },
            target: NewTarget::Handler,
            replay_from: None,
        };
        self.bus.create_subscription(new).await.unwrap();
    }

    /// Handles, tells each attempt, and fails the first ones.
    async fn handle(&self, name: &str, fails: u32, tell: mpsc::Sender<(String, String, u32)>) {
        let handler = move |incoming: Incoming| {
            let tell = tell.clone();
            async move {
                let body = String::from_utf8_lossy(incoming.event.body.bytes()).into_owned();
                let said = (incoming.subscription.to_string(), body, incoming.attempt);
                tell.send(said).await.unwrap();
                if incoming.attempt <= fails {
                    return Err(HandlerFailure::Retry { error: "not yet".to_owned(), after: None });
                }
                Ok(())
            }
            .boxed()
        };
        self.bus.handle(&id(name), Arc::new(handler)).await.unwrap();
    }

    async fn publish(&self, topic: &str, body: &str) -> usize {
        let event = NewEvent { body: Body::new(body.to_owned()).unwrap(), ..NewEvent::default() };
        let published =
            self.bus.publish(&topic.parse().unwrap(), vec![event]).await.unwrap().remove(0).unwrap();
        published.subscriptions
    }
}

fn id(text: &str) -> SubscriptionId {
    SubscriptionId::new(text).unwrap()
}

type Told = mpsc::Receiver<(String, String, u32)>;

/// The next attempt, whenever it comes.
async fn next(told: &mut Told) -> (String, String, u32) {
    tokio::time::timeout(Duration::from_mins(1), told.recv()).await.expect("in a minute").unwrap()
}

fn said(name: &str, body: &str, attempt: u32) -> (String, String, u32) {
    (name.to_owned(), body.to_owned(), attempt)
}

/// Publish, retry, sequence, replay and the dead, on any store.
async fn life(instance: &Instance) {
    let (tell, mut told) = mpsc::channel(64);
    instance.subscribe("mail", "orders.*").await;
    instance.handle("mail", 2, tell.clone()).await;
    assert_eq!(instance.publish("orders.created", "a").await, 1);
    for attempt in 1..=3 {
        assert_eq!(next(&mut told).await, said("mail", "a", attempt));
    }
    let config = TopicConfig {
        pattern: "seq".parse().unwrap(),
        dispatch: Dispatch::Sequential,
        retain: Some(Millis::from_days(1)),
    };
    instance.bus.set_topic(config, None).await.unwrap();
    for (name, fails) in [("first", 0), ("second", 1)] {
        instance.subscribe(name, "seq").await;
        instance.handle(name, fails, tell.clone()).await;
    }
    assert_eq!(instance.publish("seq", "b").await, 2);
    for expected in [said("first", "b", 1), said("second", "b", 1), said("second", "b", 2)] {
        assert_eq!(next(&mut told).await, expected);
    }
    instance.subscribe("dies", "doomed").await;
    instance.handle("dies", 99, tell.clone()).await;
    instance.publish("doomed", "c").await;
    for attempt in 1..=4 {
        assert_eq!(next(&mut told).await, said("dies", "c", attempt));
    }
    // A replay comes from the log, whatever became of the event.
    instance.subscribe("late", "seq").await;
    instance.handle("late", 0, tell).await;
    instance.bus.replay(&id("late"), Timestamp::EPOCH).await.unwrap();
    assert_eq!(next(&mut told).await, said("late", "b", 1));
    let dead = async || instance.broker.stats(&id("dies").queue()).await.unwrap().states.of(State::Dead);
    while dead().await == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_journal_keeps_topics_subscriptions_and_events() {
    let dir = tempfile::tempdir().unwrap();
    let open = async || {
        let store =
            EmbeddedStore::open(dir.path().join("data"), redrive_store_embedded::Options::default()).unwrap();
        let clock = store.clock();
        Instance::new(Arc::new(store), move || clock.now()).await
    };
    let instance = open().await;
    life(&instance).await;
    instance.bus.stop_handling(&id("mail")).await;
    instance.publish("orders.late", "kept").await;
    instance.stop().await;

    let instance = open().await;
    let (tell, mut told) = mpsc::channel(8);
    instance.handle("mail", 0, tell).await;
    assert_eq!(next(&mut told).await, said("mail", "kept", 1));
    assert_eq!(instance.bus.topics().await.unwrap().len(), 1);
    instance.stop().await;
}

/// Where several instances can be.
#[derive(Debug, Clone, Copy)]
enum Server {
    Postgres,
    Redis,
    Cluster,
}

impl Server {
    /// An instance among those of the same name. The shared servers keep nothing over a power cut.
    async fn instance(self, name: &str) -> Instance {
        let name = format!("bus_{name}_{}", std::process::id());
        if let Self::Postgres = self {
            let options = redrive_store_postgres::Options {
                durability: redrive_store_postgres::Durability::Any,
                schema: name,
                connections: 4,
                ..redrive_store_postgres::Options::new(redrive_test_servers::shared_postgres_url())
            };
            let store = PostgresStore::open(options, [42; 32]).await.unwrap();
            let clock = store.clock();
            return Instance::new(Arc::new(store), move || clock.now()).await;
        }
        let url = match self {
            Self::Cluster => redrive_test_servers::shared_redis_cluster_url(),
            _ => redrive_test_servers::shared_redis_url(),
        };
        let options = redrive_store_redis::Options {
            durability: redrive_store_redis::Durability::Any,
            prefix: name,
            ..redrive_store_redis::Options::new(url)
        };
        let store = RedisStore::open(options, [42; 32]).await.unwrap();
        let clock = store.clock();
        Instance::new(Arc::new(store), move || clock.now()).await
    }
}

/// Runs tests, each a function of a server, on every server.
macro_rules! on_every_server {
    ($($test:ident),+ $(,)?) => {
        on_every_server!(@one postgres, Postgres, $($test),+);
        on_every_server!(@one redis, Redis, $($test),+);
        on_every_server!(@one redis_cluster, Cluster, $($test),+);
    };
    (@one $name:ident, $server:ident, $($test:ident),+) => {
        mod $name {
            $(#[tokio::test]
            async fn $test() {
                super::$test(super::Server::$server).await;
            })+
        }
    };
}

on_every_server!(
    it_keeps_topics_subscriptions_and_events,
    what_one_instance_does_to_subscriptions_the_others_know_before_they_publish,
    a_sequence_goes_through_handlers_at_different_instances,
);

async fn it_keeps_topics_subscriptions_and_events(server: Server) {
    let one = server.instance("life").await;
    life(&one).await;
    one.stop().await;
    let other = server.instance("life").await;
    assert_eq!(other.bus.subscriptions(None, redrive_store::Limit::MAX).await.unwrap().len(), 5);
    other.stop().await;
}

/// A subscription that was created at one instance gets whatever is published at another from then on, without a moment
/// between; one that was deleted gets nothing more. Handlers are where they are.
async fn what_one_instance_does_to_subscriptions_the_others_know_before_they_publish(server: Server) {
    let (one, other) = (server.instance("two").await, server.instance("two").await);
    let (tell, mut told) = mpsc::channel(64);
    for n in 0..20 {
        let (name, topic) = (format!("s{n}"), format!("topic.{n}"));
        one.subscribe(&name, &topic).await;
        assert_eq!(other.publish(&topic, "x").await, 1, "{name}");
        one.handle(&name, 0, tell.clone()).await;
        assert_eq!(next(&mut told).await, said(&name, "x", 1));
        other.bus.delete_subscription(&id(&name)).await.unwrap();
        assert_eq!(one.publish(&topic, "y").await, 0, "{name}");
    }
    one.stop().await;
    other.stop().await;
}

/// Where handlers run one after another, and each is at another instance, an event goes from one to the other.
async fn a_sequence_goes_through_handlers_at_different_instances(server: Server) {
    let (one, other) = (server.instance("line").await, server.instance("line").await);
    let config =
        TopicConfig { pattern: "seq".parse().unwrap(), dispatch: Dispatch::Sequential, retain: None };
    one.bus.set_topic(config, None).await.unwrap();
    let (tell, mut told) = mpsc::channel(64);
    one.subscribe("first", "seq").await;
    other.subscribe("second", "seq").await;
    one.handle("first", 0, tell.clone()).await;
    other.handle("second", 0, tell).await;
    other.publish("seq", "x").await;
    assert_eq!(next(&mut told).await, said("first", "x", 1));
    assert_eq!(next(&mut told).await, said("second", "x", 1));
    one.stop().await;
    other.stop().await;
}
