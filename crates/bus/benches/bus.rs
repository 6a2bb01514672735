//! What publishing costs beside plain enqueues of the same bytes, and how fast an event finds its subscriptions.
//!
//! `cargo xtask bench-bus` runs it. CPU is what the kernel charges the whole process, user and system, the writer's thread of
//! the store included. The arms of a round take turns of a few dozen calls, so that what else the machine does hits all of
//! them; a bar judges the median of the rounds, and every round is printed.

#![expect(clippy::cast_precision_loss, reason = "figures for people: 52 bits are more than a clock has")]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use redrive_broker::{Broker, BrokerConfig, Clock, NewMessage, pause};
use redrive_bus::{Bus, BusConfig, NewEvent, NewSubscription, NewTarget, SubscriptionSettings};
use redrive_core::lifecycle::{Draft, When};
use redrive_core::message::{Body, Headers, MessageId, MessageType, Priority, Spec};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::receipt::ReceiptKey;
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::Timestamp;
use redrive_core::topic::Topic;
use redrive_store::{CreateQueue, Store};
use redrive_store_embedded::{EmbeddedStore, StoreClock};
use redrive_store_memory::MemoryStore;

const ROUNDS: usize = 5;
/// How many subscriptions one event goes to.
const FAN_OUT: usize = 10;
const BODY_BYTES: usize = 1_024;
const TURNS: usize = 40;
const CALLS_PER_TURN: usize = 25;
const PATTERNS: usize = 100_000;
const MATCHES: usize = 200_000;

/// Publish to ten queues: at most so much CPU as one batch of ten enqueues of the same bytes, times this.
const PUBLISH_BAR: f64 = 1.5;
/// To find who wants an event among 100,000: at most so many microseconds.
const MATCH_BAR: f64 = 5.0;

#[derive(Debug)]
struct StoreTime(StoreClock);

#[async_trait::async_trait]
impl Clock for StoreTime {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    async fn until(&self, at: Timestamp) {
        while self.now() < at {
            pause(at.since(self.now())).await;
        }
    }
}

/// A clock that stands still: nothing waits here.
#[derive(Debug)]
struct Still;

#[async_trait::async_trait]
impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_000_000)
    }

    async fn until(&self, _: Timestamp) {
        std::future::pending::<()>().await;
    }
}

/// What the process has cost so far.
fn cpu() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(spent.tv_sec).unwrap_or_default(),
        u32::try_from(spent.tv_nsec).unwrap_or_default(),
    )
}

fn since(begin: Duration) -> Duration {
    cpu().saturating_sub(begin)
}

fn queue(n: usize) -> QueueName {
    QueueName::new(format!("queue-{n}")).expect("a name")
}

fn topic(text: &str) -> Topic {
    text.parse().expect("a topic")
}

fn event() -> NewEvent {
    NewEvent { body: Body::new(vec![b'x'; BODY_BYTES]).expect("small"), ..NewEvent::default() }
}

/// The message that an event becomes, as a producer would write it.
fn plain(queue: QueueName) -> NewMessage {
    let event = event();
    let headers = [("redrive-topic".to_owned(), "orders.created".to_owned())];
    let spec = Spec {
        id: MessageId::MIN,
        body: event.body,
        content_type: event.content_type,
        headers: Headers::new(headers).expect("a header"),
        kind: MessageType::new("orders.created").expect("a type"),
        source: redrive_core::message::Source::default(),
        fairness_key: event.fairness_key,
        dedup: None,
        lease_timeout: None,
        max_attempts: None,
    };
    let draft = Draft { spec, priority: Priority::default(), visible: When::Now, expires: None };
    NewMessage { queue, id: None, draft, idempotency_key: None, request: None }
}

async fn subscribe(bus: &Bus, id: String, pattern: &str, queue: QueueName) {
    let new = NewSubscription {
        id: Some(SubscriptionId::new(id).expect("a name")),
        settings: SubscriptionSettings::new(pattern.parse().expect("a pattern")),
        target: NewTarget::Queue(queue),
        replay_from: None,
    };
    bus.create_subscription(new).await.expect("a subscription");
}

/// CPU of each arm for one call, in microseconds.
struct Round {
    publish: f64,
    ten_queues: f64,
    one_queue: f64,
}

async fn publish_round(broker: &Broker, bus: &Bus) -> Round {
    let about = topic("orders.created");
    let (mut publish, mut ten, mut one) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    for _ in 0..TURNS {
        let begin = cpu();
        for _ in 0..CALLS_PER_TURN {
            let published = bus.publish(&about, vec![event()]).await.expect("published");
            assert!(published.iter().all(|one| one.as_ref().is_ok_and(|one| one.subscriptions == FAN_OUT)));
        }
        publish += since(begin);
        let begin = cpu();
        for _ in 0..CALLS_PER_TURN {
            let batch = (0..FAN_OUT).map(|n| plain(queue(n))).collect();
            assert_eq!(broker.enqueue(batch, true).await.expect("enqueued").len(), FAN_OUT);
        }
        ten += since(begin);
        let begin = cpu();
        for _ in 0..CALLS_PER_TURN {
            let batch = (0..FAN_OUT).map(|_| plain(queue(0))).collect();
            assert_eq!(broker.enqueue(batch, true).await.expect("enqueued").len(), FAN_OUT);
        }
        one += since(begin);
    }
    let each = |spent: Duration| spent.as_secs_f64() * 1e6 / (TURNS * CALLS_PER_TURN) as f64;
    Round { publish: each(publish), ten_queues: each(ten), one_queue: each(one) }
}

async fn publish() -> f64 {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory to work in");
    let store = EmbeddedStore::open(dir.path().join("data"), redrive_store_embedded::Options::default());
    let store = Arc::new(store.expect("a store"));
    let clock = Arc::new(StoreTime(store.clock()));
    let shared = Arc::clone(&store) as Arc<dyn Store>;
    let (broker, background) = Broker::start(shared, clock, BrokerConfig::default()).await.expect("a broker");
    let (bus, upkeep) = Bus::start(broker.clone(), BusConfig::default()).await.expect("a bus");
    for n in 0..FAN_OUT {
        let request = CreateQueue { name: queue(n), config: QueueConfig::default() };
        broker.create_queue(request).await.expect("a queue");
        subscribe(&bus, format!("s{n}"), "orders.*", queue(n)).await;
    }
    println!("publish with {FAN_OUT} queue subscriptions, {BODY_BYTES} B, embedded store; CPU a call, us");
    println!(
        "{:<10}{:>12}{:>16}{:>16}{:>10}",
        "round", "publish", "10 to 10 queues", "10 to 1 queue", "ratio"
    );
    let mut ratios = Vec::new();
    for number in 1..=ROUNDS {
        let Round { publish, ten_queues, one_queue } = publish_round(&broker, &bus).await;
        // The cheaper one of the two is what a publish is held against.
        let ratio = publish / one_queue.min(ten_queues);
        println!("{number:<10}{publish:>12.1}{ten_queues:>16.1}{one_queue:>16.1}{ratio:>10.3}");
        ratios.push(ratio);
    }
    upkeep.stop().await;
    background.stop().await;
    median(ratios)
}

/// 100,000 subscriptions, each on a pattern of its own; some match by name, some by one star, some by two.
async fn matching() -> f64 {
    let store = Arc::new(MemoryStore::new(redrive_store_memory::Options::new(ReceiptKey::new([1; 32]))));
    let (broker, background) =
        Broker::start(store, Arc::new(Still), BrokerConfig::default()).await.expect("a broker");
    let (bus, upkeep) = Bus::start(broker.clone(), BusConfig::default()).await.expect("a bus");
    let request = CreateQueue { name: queue(0), config: QueueConfig::default() };
    broker.create_queue(request).await.expect("a queue");
    for n in 0..PATTERNS {
        let tenant = n / 4;
        let pattern = match n % 4 {
            0 => format!("tenants.{tenant}.orders.created"),
            1 => format!("tenants.{tenant}.*.created"),
            2 => format!("tenants.{tenant}.**"),
            _ => format!("*.{tenant}.orders.*"),
        };
        subscribe(&bus, format!("s{n}"), &pattern, queue(0)).await;
    }
    println!("\nwho wants an event, among {PATTERNS} subscriptions on distinct patterns; CPU an event, us");
    println!("{:<10}{:>12}{:>16}", "round", "4 match", "none matches");
    let topics: Vec<Topic> =
        (0..1_000).map(|n| topic(&format!("tenants.{}.orders.created", n * 23))).collect();
    let strange: Vec<Topic> = (0..1_000).map(|n| topic(&format!("somebody.x{n}.else.entirely"))).collect();
    let mut all = Vec::new();
    for number in 1..=ROUNDS {
        let arm = |topics: &[Topic], each: usize| {
            let begin = cpu();
            let mut found = 0;
            for at in 0..MATCHES {
                found += bus.reaches(&topics[at % topics.len()]);
            }
            assert_eq!(found, MATCHES * each);
            since(begin).as_secs_f64() * 1e6 / MATCHES as f64
        };
        let (four, none) = (arm(&topics, 4), arm(&strange, 0));
        println!("{number:<10}{four:>12.3}{none:>16.3}");
        all.push(four);
    }
    upkeep.stop().await;
    background.stop().await;
    median(all)
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Prints a bar; says whether it is reached.
fn bar(name: &str, measured: f64, limit: f64) -> bool {
    let reached = measured <= limit;
    println!("bar {name} {measured:.3} {limit:.3} {}", if reached { "ok" } else { "short" });
    reached
}

fn main() -> ExitCode {
    let mut check = false;
    for flag in std::env::args().skip(1) {
        match flag.as_str() {
            "--check" => check = true,
            // Cargo says so of itself.
            "--bench" => {}
            other => {
                eprintln!("bench-bus: does not know `{other}`");
                return ExitCode::from(2);
            }
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let (publish, matching) = runtime.block_on(async { (publish().await, matching().await) });
    println!();
    let reached = [bar("publish_cpu", publish, PUBLISH_BAR), bar("match_100000", matching, MATCH_BAR)];
    if check && reached.contains(&false) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
