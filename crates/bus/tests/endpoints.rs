//! What endpoints answer, and what becomes of their subscriptions: real requests over loopback, and a clock that the test moves.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use redrive_broker::{Act, Background, Broker, BrokerConfig, Happening, ManualClock, Told, Watch};
use redrive_bus::webhook::{AllowRule, Guard, Signed, SigningSecret, WebhookConfig, verify};
use redrive_bus::{
    Bus, BusBackground, BusConfig, EndpointSettings, Format, NewEvent, NewSubscription, NewTarget, State,
    SubscriptionChange, SubscriptionSettings, WhyDisabled,
};
use redrive_core::message::{Body, ContentType, State as MessageState};
use redrive_core::policy::RetryOverride;
use redrive_core::receipt::ReceiptKey;
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::{Millis, Timestamp};
use redrive_store_memory::MemoryStore;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// One request that was received.
#[derive(Debug, Clone)]
struct Received {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Received {
    fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str()).unwrap()
    }
}

/// An endpoint that answers what it is told to.
struct Endpoint {
    url: String,
    status: Arc<AtomicU16>,
    retry_after: Arc<Mutex<Option<u32>>>,
    received: mpsc::Receiver<Received>,
    count: Arc<AtomicUsize>,
}

impl Endpoint {
    async fn new(status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://127.0.0.1:{}/hook", listener.local_addr().unwrap().port());
        let status = Arc::new(AtomicU16::new(status));
        let retry_after = Arc::new(Mutex::new(None));
        let count = Arc::new(AtomicUsize::new(0));
        let (tell, received) = mpsc::channel(64);
        let said = (Arc::clone(&status), Arc::clone(&retry_after), Arc::clone(&count));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, said.clone(), tell.clone()));
            }
        });
        Self { url, status, retry_after, received, count }
    }

    async fn next(&mut self) -> Received {
        self.received.recv().await.unwrap()
    }
}

type Says = (Arc<AtomicU16>, Arc<Mutex<Option<u32>>>, Arc<AtomicUsize>);

async fn serve(stream: TcpStream, (status, retry_after, count): Says, tell: mpsc::Sender<Received>) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                return;
            }
            if line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.trim().split_once(": ") {
                headers.push((name.to_ascii_lowercase(), value.to_owned()));
            }
        }
        let length = headers
            .iter()
            .find(|(name, _)| name == "content-length")
            .map(|(_, value)| value.parse().unwrap());
        let mut body = vec![0; length.unwrap_or(0)];
        stream.read_exact(&mut body).await.unwrap();
        count.fetch_add(1, Ordering::SeqCst);
        let asked = retry_after
            .lock()
            .unwrap()
            .map_or(String::new(), |seconds| format!("retry-after: {seconds}\r\n"));
        let answer =
            format!("HTTP/1.1 {} X\r\n{asked}content-length: 2\r\n\r\nok", status.load(Ordering::SeqCst));
        tell.send(Received { headers, body }).await.unwrap();
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

struct World {
    bus: Bus,
    broker: Broker,
    clock: Arc<ManualClock>,
    told: Watch,
    _background: (BusBackground, Background),
}

impl World {
    async fn new() -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let store = Arc::new(MemoryStore::new(redrive_store_memory::Options::new(ReceiptKey::new([3; 32]))));
        let shared = Arc::clone(&clock) as Arc<dyn redrive_broker::Clock>;
        let (broker, background) = Broker::start(store, shared, BrokerConfig::default()).await.unwrap();
        let guard = Guard::allowing(vec![AllowRule::parse("127.0.0.1/32:*").unwrap()]);
        let webhooks = Some(WebhookConfig { guard, ..WebhookConfig::default() });
        let config = BusConfig { webhooks, ..BusConfig::default() };
        let (bus, upkeep) = Bus::start(broker.clone(), config).await.unwrap();
        let told = broker.watch(None);
        Self { bus, broker, clock, told, _background: (upkeep, background) }
    }

    async fn subscribe(&self, endpoint: &Endpoint, format: Format, disable_after: Millis) -> SigningSecret {
        let settings = SubscriptionSettings {
            breaker: Some(None),
            ..SubscriptionSettings::new("orders.*".parse().unwrap())
        };
        let endpoint =
            EndpointSettings { url: endpoint.url.clone(), format, disable_after: Some(Some(disable_after)) };
        let new = NewSubscription {
            id: Some(id()),
            settings,
            target: NewTarget::Webhook(endpoint, None),
            replay_from: None,
        };
        self.bus.create_subscription(new).await.unwrap().secret.unwrap()
    }

    async fn publish(&self, body: &str) -> String {
        let event = NewEvent {
            body: Body::new(body.to_owned()).unwrap(),
            content_type: ContentType::new("application/json").unwrap(),
            ..NewEvent::default()
        };
        let topic = "orders.created".parse().unwrap();
        self.bus.publish(&topic, vec![event]).await.unwrap().remove(0).unwrap().id.to_string()
    }

    /// Waits for something to be done to the subscription.
    async fn told(&mut self, wanted: Act) {
        loop {
            if let Told::Event(event) = self.told.next().await
                && event.what == Happening::Subscription(wanted)
            {
                return;
            }
        }
    }

    /// Waits until a message is delivered.
    async fn delivered(&mut self, event: &str) {
        while self.broker.get(&id().queue(), event.parse().unwrap()).await.is_ok() {
            drop(self.told.next().await);
        }
    }

    /// Waits until so many messages are in that state.
    async fn count(&mut self, state: MessageState, count: u64) {
        loop {
            let now = self.broker.stats(&id().queue()).await.unwrap();
            if now.states.of(state) == count {
                return;
            }
            drop(self.told.next().await);
        }
    }

    async fn state(&self) -> State {
        self.bus.subscription(&id()).await.unwrap().state
    }
}

fn id() -> SubscriptionId {
    SubscriptionId::new("hook").unwrap()
}

fn verified(secret: &SigningSecret, request: &Received, now: Timestamp) -> bool {
    let signed = Signed {
        id: request.header("webhook-id"),
        timestamp: request.header("webhook-timestamp"),
        signature: request.header("webhook-signature"),
        body: &request.body,
    };
    verify(std::slice::from_ref(secret), &signed, now, Millis::from_secs(300)).is_ok()
}

/// The id is the event's, the same at every attempt; the signature is made anew; Retry-After is obeyed, and so is the policy.
#[tokio::test]
async fn a_failed_delivery_comes_back_with_the_same_id_when_it_was_asked_to() {
    let (mut world, mut endpoint) = (World::new().await, Endpoint::new(503).await);
    let secret = world.subscribe(&endpoint, Format::Structured, Millis::from_days(5)).await;
    *endpoint.retry_after.lock().unwrap() = Some(120);
    let event = world.publish(r#"{"n":1}"#).await;
    let first = endpoint.next().await;
    assert_eq!(first.header("webhook-id"), event);
    assert_eq!(first.header("content-type"), "application/cloudevents+json; charset=utf-8");
    assert!(verified(&secret, &first, START));
    let json: serde_json::Value = serde_json::from_slice(&first.body).unwrap();
    assert_eq!((&json["data"]["n"], &json["type"]), (&1.into(), &"orders.created".into()));
    world.count(MessageState::Delayed, 1).await;
    let message = world.broker.get(&id().queue(), event.parse().unwrap()).await.unwrap();
    assert_eq!(message.progress.visible_at.since(START), Millis::from_secs(120), "not after five seconds");
    endpoint.status.store(204, Ordering::SeqCst);
    world.clock.advance(Millis::from_secs(120));
    let second = endpoint.next().await;
    assert_eq!(second.header("webhook-id"), event);
    assert_ne!(second.header("webhook-timestamp"), first.header("webhook-timestamp"));
    assert!(verified(&secret, &second, START.plus(Millis::from_secs(120))));
    world.delivered(&event).await;
    let attempts = world.bus.attempts(&id());
    assert_eq!(
        attempts.iter().map(|one| one.capture.as_ref().unwrap().status).collect::<Vec<_>>(),
        [Some(204), Some(503)]
    );
}

#[tokio::test]
async fn binary_events_carry_their_attributes_in_headers() {
    let (world, mut endpoint) = (World::new().await, Endpoint::new(200).await);
    world.subscribe(&endpoint, Format::Binary, Millis::from_days(5)).await;
    let event = world.publish("{}").await;
    let request = endpoint.next().await;
    assert_eq!(request.body, b"{}");
    assert_eq!((request.header("ce-id"), request.header("ce-type")), (event.as_str(), "orders.created"));
    assert_eq!(
        (request.header("content-type"), request.header("ce-specversion")),
        ("application/json", "1.0")
    );
}

/// 410 switches the endpoint off; the event is given back, and comes when the endpoint is switched on again.
#[tokio::test]
async fn an_endpoint_that_is_gone_is_switched_off() {
    let (mut world, mut endpoint) = (World::new().await, Endpoint::new(410).await);
    world.subscribe(&endpoint, Format::Structured, Millis::from_days(5)).await;
    let event = world.publish("{}").await;
    endpoint.next().await;
    world.told(Act::Disabled).await;
    assert_eq!(world.state().await, State::Disabled { at: START, why: WhyDisabled::Gone });
    world.count(MessageState::Ready, 1).await;
    let message = world.broker.get(&id().queue(), event.parse().unwrap()).await.unwrap();
    assert_eq!(message.progress.attempts, 0, "nobody is charged");
    endpoint.status.store(200, Ordering::SeqCst);
    world.bus.enable_subscription(&id()).await.unwrap();
    assert_eq!(endpoint.next().await.header("webhook-id"), event);
}

/// Nothing but failures for as long as was set: switched off, with an event. One success in between, and it begins anew.
#[tokio::test]
async fn an_endpoint_that_does_nothing_but_fail_is_switched_off_in_time() {
    let (mut world, mut endpoint) = (World::new().await, Endpoint::new(500).await);
    let hour = Millis::from_secs(3_600);
    world.subscribe(&endpoint, Format::Structured, hour).await;
    // One attempt each, so that none comes back in between.
    let retry = RetryOverride { max_attempts: Some(NonZeroU32::new(1)), ..RetryOverride::default() };
    let once = world.bus.subscription(&id()).await.unwrap().settings.clone();
    let once = SubscriptionSettings { retry, ..once };
    let change = SubscriptionChange { settings: once, endpoint: None, expected: None };
    world.bus.update_subscription(&id(), change).await.unwrap();
    world.told(Act::Updated).await;
    let mut fail = async |world: &mut World, status: u16| {
        endpoint.status.store(status, Ordering::SeqCst);
        let before = endpoint.count.load(Ordering::SeqCst);
        world.publish("{}").await;
        while endpoint.count.load(Ordering::SeqCst) == before {
            endpoint.next().await;
        }
    };
    fail(&mut world, 500).await;
    world.count(MessageState::Leased, 0).await;
    world.clock.advance(Millis::from_secs(3_000));
    fail(&mut world, 500).await;
    world.told(Act::Updated).await;
    let since = world.bus.subscription(&id()).await.unwrap().failing_since;
    assert_eq!(since, Some(START), "it has lasted long enough to be written down");
    fail(&mut world, 200).await;
    world.told(Act::Updated).await;
    assert_eq!(world.bus.subscription(&id()).await.unwrap().failing_since, None);
    world.clock.advance(hour);
    fail(&mut world, 500).await;
    world.count(MessageState::Leased, 0).await;
    assert_eq!(
        world.state().await,
        State::Active,
        "an hour since the first failure, not since the last success"
    );
    world.clock.advance(hour);
    fail(&mut world, 500).await;
    world.told(Act::Disabled).await;
    assert!(matches!(world.state().await, State::Disabled { why: WhyDisabled::Failing, .. }));
    // Switched on again it has all of its time again, and not only until the next failure.
    world.bus.enable_subscription(&id()).await.unwrap();
    fail(&mut world, 500).await;
    world.count(MessageState::Leased, 0).await;
    assert_eq!(world.state().await, State::Active);
    world.clock.advance(hour);
    fail(&mut world, 500).await;
    world.told(Act::Disabled).await;
    let rest = world.publish("{}").await;
    assert!(
        world.broker.get(&id().queue(), rest.parse().unwrap()).await.is_err(),
        "nothing more comes to it"
    );
}

/// While a secret is replaced, requests are signed with the old and the new one; afterwards with the new one alone.
#[tokio::test]
async fn a_secret_is_replaced_without_a_gap() {
    let (world, mut endpoint) = (World::new().await, Endpoint::new(200).await);
    let old = world.subscribe(&endpoint, Format::Structured, Millis::from_days(5)).await;
    let new = world.bus.rotate_secret(&id(), None, Millis::from_secs(600)).await.unwrap().secret.unwrap();
    world.publish("{}").await;
    let request = endpoint.next().await;
    assert!(verified(&old, &request, START) && verified(&new, &request, START));
    world.clock.advance(Millis::from_secs(600));
    world.publish("{}").await;
    let (request, now) = (endpoint.next().await, START.plus(Millis::from_secs(600)));
    assert!(!verified(&old, &request, now) && verified(&new, &request, now));
}
