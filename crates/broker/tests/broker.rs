//! The broker over the reference store, with a clock that the test moves: what wakes whom, what is told, what goes on.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use redrive_broker::{
    Background, Broker, BrokerConfig, BrokerError, Bury, Clock, Delivery, Extend, Happening, LeaseCall,
    ManualClock, Nack, NewMessage, NewOperation, Obstacle, OperationState, Release, Target, Told, Trigger,
    Watch, Work,
};
use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::{Draft, When};
use redrive_core::message::{
    Body, ContentType, DedupKey, ErrorText, FairnessKey, Headers, Lane, MessageId, MessageType, Priority,
    Source, Spec, State,
};
use redrive_core::policy::{Asked, BreakerConfig, BreakerState, Jitter, RetryOverride};
use redrive_core::queue::{Pause, QueueConfig, QueueName};
use redrive_core::receipt::ReceiptKey;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    ClassFilter, CreateQueue, DeleteQueue, EnqueueOutcome, Filter, LaneChoice, Limit, ListRequest,
    PauseQueue, QueueError, Store, UpdateQueue,
};
use redrive_store_memory::{MemoryStore, Options};
use tokio::task::JoinHandle;

/// Longer than any test takes: a poll that waits for this long has failed.
const PATIENCE: Millis = Millis::from_secs(60);

struct World {
    broker: Broker,
    _background: Background,
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
    queue: QueueName,
}

impl World {
    async fn with(config: QueueConfig) -> Self {
        let store = Arc::new(MemoryStore::new(Options::new(ReceiptKey::new([7; 32]))));
        Self::over(store, config).await
    }

    async fn over(store: Arc<MemoryStore>, config: QueueConfig) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_000_000)));
        let settings = BrokerConfig { poll_wait_max: PATIENCE, ..BrokerConfig::default() };
        let (broker, background) =
            Broker::start(Arc::<MemoryStore>::clone(&store), Arc::<ManualClock>::clone(&clock), settings)
                .await
                .unwrap();
        let queue = QueueName::new("orders").unwrap();
        let created = broker.create_queue(CreateQueue { name: queue.clone(), config }).await;
        assert!(matches!(created, Ok(_) | Err(BrokerError::Queue(QueueError::AlreadyExists(_)))));
        Self { broker, _background: background, clock, store, queue }
    }

    async fn new() -> Self {
        Self::with(QueueConfig::default()).await
    }

    fn message(&self) -> NewMessage {
        let spec = Spec {
            id: MessageId::MIN,
            body: Body::new("work").unwrap(),
            content_type: ContentType::default(),
            headers: Headers::default(),
            kind: MessageType::new("invoice.paid").unwrap(),
            source: Source::new("shop").unwrap(),
            fairness_key: FairnessKey::default(),
            dedup: None,
            lease_timeout: None,
            max_attempts: None,
        };
        let draft = Draft { spec, priority: Priority::default(), visible: When::Now, expires: None };
        NewMessage { queue: self.queue.clone(), id: None, draft, idempotency_key: None }
    }

    async fn put_one(&self, change: impl FnOnce(&mut NewMessage)) -> MessageId {
        let mut message = self.message();
        change(&mut message);
        match self.broker.enqueue(vec![message], false).await.unwrap().remove(0).unwrap() {
            EnqueueOutcome::Enqueued { id, .. } => id,
            other => panic!("{other:?}"),
        }
    }

    async fn put(&self, count: usize) {
        let messages = (0..count).map(|_| self.message()).collect();
        for outcome in self.broker.enqueue(messages, false).await.unwrap() {
            assert!(matches!(outcome.unwrap(), EnqueueOutcome::Enqueued { .. }));
        }
    }

    fn call(&self, limit: usize) -> LeaseCall {
        LeaseCall::new(self.queue.clone(), Limit::new(limit).unwrap(), ConsumerName::default())
    }

    async fn lease(&self, limit: usize) -> Vec<Delivery> {
        self.broker.lease(self.call(limit)).await.unwrap()
    }

    /// A poll that waits; it is parked when this returns.
    async fn poll(&self, call: LeaseCall) -> JoinHandle<Result<Vec<Delivery>, BrokerError>> {
        let before = self.parked().await;
        let broker = self.broker.clone();
        let poll = tokio::spawn(async move { broker.lease(LeaseCall { wait: PATIENCE, ..call }).await });
        while self.parked().await == before {
            tokio::task::yield_now().await;
        }
        // It has joined; let it look once and fall asleep.
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        assert!(!poll.is_finished());
        poll
    }

    async fn parked(&self) -> String {
        let text = self.broker.metrics_text().await.unwrap();
        text.lines().find(|line| line.starts_with("redrive_waiting_polls ")).unwrap().to_owned()
    }

    async fn nack(&self, delivery: &Delivery) {
        let nack = Nack {
            receipt: delivery.receipt.clone(),
            asked: Asked::Nothing,
            error: ErrorText::new("boom"),
            checkpoint: None,
        };
        assert_eq!(self.broker.nack(vec![nack]).await.unwrap()[0].code(), None);
    }

    async fn ack(&self, delivery: &Delivery) {
        assert_eq!(self.broker.ack(vec![delivery.receipt.clone()]).await.unwrap()[0].code(), None);
    }

    async fn states(&self) -> (u64, u64, u64, u64) {
        let states = self.broker.stats(&self.queue).await.unwrap().states;
        let of = |state| states.of(state);
        (of(State::Ready), of(State::Delayed), of(State::Leased), of(State::Dead))
    }

    async fn until_states(&self, wanted: (u64, u64, u64, u64)) {
        let mut seen = self.states().await;
        while seen != wanted {
            tokio::task::yield_now().await;
            seen = self.states().await;
        }
    }
}

async fn done(poll: JoinHandle<Result<Vec<Delivery>, BrokerError>>) -> Vec<Delivery> {
    let answer = tokio::time::timeout(Duration::from_secs(30), poll).await;
    answer.expect("the poll was not woken").unwrap().unwrap()
}

/// The next event of that kind.
async fn event(watch: &mut Watch, name: &str) -> Arc<redrive_broker::Event> {
    loop {
        let told = tokio::time::timeout(Duration::from_secs(30), watch.next()).await;
        match told.expect("no such event came") {
            Told::Event(event) if event.what.name() == name => return event,
            Told::Event(_) => {}
            Told::Lagged(_) => panic!("events were missed"),
        }
    }
}

fn retry(base: Millis, max_attempts: u32) -> QueueConfig {
    let retry = RetryOverride {
        max_attempts: Some(NonZeroU32::new(max_attempts)),
        base_delay: Some(base),
        jitter: Some(Jitter::None),
        ..RetryOverride::default()
    };
    QueueConfig { retry, ..QueueConfig::default() }
}

#[tokio::test]
async fn an_enqueue_wakes_a_poll() {
    let world = World::new().await;
    let poll = world.poll(world.call(10)).await;
    let id = world.put_one(|_| ()).await;
    assert_eq!(done(poll).await[0].message.id(), id);
}

#[tokio::test]
async fn each_message_wakes_one_of_many_polls() {
    let world = World::new().await;
    let mut polls = VecDeque::new();
    for _ in 0..5 {
        polls.push_back(world.poll(world.call(1)).await);
    }
    world.put(3).await;
    for _ in 0..3 {
        assert_eq!(done(polls.pop_front().unwrap()).await.len(), 1);
    }
    assert!(polls.iter().all(|poll| !poll.is_finished()), "nothing was there for them");
    world.put(2).await;
    for poll in polls {
        assert_eq!(done(poll).await.len(), 1);
    }
}

#[tokio::test]
async fn a_poll_with_a_filter_is_not_in_the_way_of_others() {
    let world = World::new().await;
    let kinds = vec![MessageType::new("refund").unwrap()];
    let filtered = LeaseCall { filter: ClassFilter { kinds, sources: Vec::new() }, ..world.call(1) };
    let retries = LeaseCall { lane: LaneChoice::Only(Lane::Retry), ..world.call(1) };
    let (filtered, retries) = (world.poll(filtered).await, world.poll(retries).await);
    let any = world.poll(world.call(1)).await;
    world.put(1).await;
    let delivery = done(any).await.remove(0);
    assert!(!filtered.is_finished() && !retries.is_finished());
    world.put_one(|message| message.draft.spec.kind = MessageType::new("refund").unwrap()).await;
    assert_eq!(done(filtered).await.len(), 1);
    world
        .broker
        .release(vec![Release { target: Target::Receipt(delivery.receipt), delay: None }])
        .await
        .unwrap();
    let fresh = world.lease(1).await.remove(0);
    world.nack(&fresh).await;
    world.clock.advance(Millis::from_secs(5));
    assert_eq!(done(retries).await.len(), 1);
}

#[tokio::test]
async fn what_becomes_due_wakes_a_poll_when_its_time_comes() {
    let world = World::with(retry(Millis::from_secs(10), 5)).await;
    world.put_one(|message| message.draft.visible = When::After(Millis::from_secs(3))).await;
    let poll = world.poll(world.call(1)).await;
    world.clock.advance(Millis::new(2_999));
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert!(!poll.is_finished(), "not before its time");
    world.clock.advance(Millis::new(1));
    let first = done(poll).await.remove(0);
    let poll = world.poll(world.call(1)).await;
    world.nack(&first).await;
    world.clock.advance(Millis::from_secs(10));
    assert_eq!(done(poll).await[0].message.progress.attempts, 2, "a retry, after its backoff");
}

#[tokio::test]
async fn whatever_makes_a_message_ready_wakes_a_poll() {
    let world = World::with(retry(Millis::ZERO, 2)).await;
    world.put(1).await;
    let first = world.lease(1).await.remove(0);
    let poll = world.poll(world.call(1)).await;
    world
        .broker
        .release(vec![Release { target: Target::Receipt(first.receipt), delay: None }])
        .await
        .unwrap();
    let second = done(poll).await.remove(0);
    let poll = world.poll(world.call(1)).await;
    world.nack(&second).await;
    let third = done(poll).await.remove(0);
    let poll = world.poll(world.call(1)).await;
    world.nack(&third).await;
    assert_eq!(world.states().await.3, 1, "dead at the cap");
    let work = Work::Redrive { by: "ann".parse().unwrap(), reason: "fixed".parse().unwrap() };
    let redrive = NewOperation { queue: world.queue.clone(), filter: Filter::default(), work, rate: None };
    world.broker.start_operation(redrive).await.unwrap();
    let fourth = done(poll).await.remove(0);
    assert_eq!(fourth.message.progress.redrives, 1);
    let poll = world.poll(world.call(1)).await;
    world.clock.advance(Millis::from_secs(30));
    assert_eq!(done(poll).await[0].message.progress.attempts, 2, "the lease ran out");
}

#[tokio::test]
async fn a_resume_wakes_a_poll_and_so_does_the_end_of_a_pause() {
    let world = World::new().await;
    let pause = |pause| PauseQueue { name: world.queue.clone(), key: None, pause };
    world.broker.pause_queue(pause(Some(Pause::UntilResumed))).await.unwrap();
    world.put(2).await;
    let poll = world.poll(world.call(1)).await;
    world.broker.pause_queue(pause(None)).await.unwrap();
    assert_eq!(done(poll).await.len(), 1);
    let end = world.broker.now().plus(Millis::from_secs(60));
    world.broker.pause_queue(pause(Some(Pause::Until(end)))).await.unwrap();
    let poll = world.poll(world.call(1)).await;
    world.clock.advance(Millis::from_secs(60));
    assert_eq!(done(poll).await.len(), 1);
}

#[tokio::test]
async fn a_poll_of_a_queue_that_is_deleted_is_told() {
    let world = World::new().await;
    let poll = world.poll(world.call(1)).await;
    world.broker.delete_queue(DeleteQueue { name: world.queue.clone(), force: false }).await.unwrap();
    let error = poll.await.unwrap().unwrap_err();
    assert_eq!(error.code(), "QUEUE_NOT_FOUND");
}

#[tokio::test]
async fn a_poll_that_goes_away_takes_nothing_with_it() {
    let world = World::new().await;
    let poll = world.poll(world.call(1)).await;
    poll.abort();
    assert!(poll.await.unwrap_err().is_cancelled());
    world.put(1).await;
    assert_eq!(world.lease(1).await.len(), 1);
    assert!(world.parked().await.ends_with(" 0"));
}

#[tokio::test]
async fn an_overdue_lease_ends_when_its_time_comes_and_is_told_as_the_design_says() {
    let world = World::with(retry(Millis::ZERO, 2)).await;
    let mut watch = world.broker.watch(None);
    world.put(3).await;
    let held = world.lease(3).await;
    world.clock.advance(Millis::from_secs(20));
    let extend = Extend {
        target: Target::Receipt(held[0].receipt.clone()),
        time: Some(Millis::from_secs(30)),
        checkpoint: None,
    };
    let deadline = world.broker.extend(vec![extend]).await.unwrap().remove(0).applied().unwrap();
    assert_eq!(deadline, world.broker.now().plus(Millis::from_secs(30)));
    world.clock.advance(Millis::from_secs(10));
    world.until_states((2, 0, 1, 0)).await;
    let requeue = event(&mut watch, "requeue").await;
    assert_eq!((requeue.count, requeue.dlq_count, requeue.trigger), (2, 0, Trigger::Scheduler));
    let again = world.lease(2).await;
    assert!(again.iter().all(|delivery| delivery.message.progress.attempts == 2));
    world.clock.advance(Millis::from_secs(30));
    world.until_states((1, 0, 0, 2)).await;
    let requeue = event(&mut watch, "requeue").await;
    let dead = event(&mut watch, "move_to_dlq").await;
    assert_eq!(requeue.dlq_count + requeue.count, 3, "{requeue:?}");
    assert_eq!(dead.count, 2);
    let stale = world.broker.ack(vec![held[1].receipt.clone()]).await.unwrap();
    assert_eq!(stale[0].code(), Some("LEASE_LOST"));
}

#[tokio::test]
async fn an_operator_can_end_what_is_overdue_and_say_why() {
    let world = World::new().await;
    world.put(1).await;
    let held = world.lease(1).await.remove(0);
    let requeue = |error: &str| {
        let queue = Some(world.queue.clone());
        world.broker.requeue_expired(queue, Limit::MAX, Some(ErrorText::new(error)))
    };
    assert_eq!(requeue("not yet").await.unwrap(), 0);
    let mut watch = world.broker.watch(None);
    // Nothing runs between these two lines: the sweeper has not seen yet that the time has come.
    world.clock.advance(Millis::from_secs(30));
    assert_eq!(requeue("ended by hand").await.unwrap(), 1);
    let message = world.broker.get(&world.queue, held.message.id()).await.unwrap();
    assert_eq!(message.history.last_error.unwrap().as_str(), "ended by hand");
    assert_eq!(event(&mut watch, "requeue").await.trigger, Trigger::Operator);
}

#[tokio::test]
async fn what_becomes_due_while_the_broker_asks_wakes_a_poll_as_well() {
    for delay in 1..60 {
        let world = World::new().await;
        let clock = Arc::new(Hasty(Arc::clone(&world.clock)));
        let store: Arc<dyn Store> = Arc::<MemoryStore>::clone(&world.store);
        let settings = BrokerConfig { poll_wait_max: PATIENCE, ..BrokerConfig::default() };
        let (broker, _background) = Broker::start(store, clock, settings).await.unwrap();
        let world = World { broker, ..world };
        world.put_one(|message| message.draft.visible = When::After(Millis::new(delay))).await;
        let call = LeaseCall { wait: PATIENCE, ..world.call(1) };
        let broker = world.broker.clone();
        let poll = tokio::spawn(async move { broker.lease(call).await });
        while world.broker.now() < Timestamp::from_millis(1_000_200) {
            tokio::task::yield_now().await;
        }
        assert_eq!(done(poll).await.len(), 1, "due after {delay} ms");
    }
}

/// A clock on which a millisecond passes whenever somebody looks at it.
#[derive(Debug)]
struct Hasty(Arc<ManualClock>);

#[async_trait::async_trait]
impl Clock for Hasty {
    fn now(&self) -> Timestamp {
        self.0.advance(Millis::new(1));
        self.0.now()
    }

    async fn until(&self, at: Timestamp) {
        self.0.until(at).await;
    }
}

#[tokio::test]
async fn settling_answers_each_item_by_itself() {
    let world = World::new().await;
    world.put(2).await;
    let held = world.lease(2).await;
    let receipts = vec!["nonsense".to_owned(), held[0].receipt.clone(), held[0].receipt.clone()];
    let codes: Vec<Option<&str>> =
        world.broker.ack(receipts).await.unwrap().iter().map(redrive_broker::Settlement::code).collect();
    assert_eq!(codes, [Some("INVALID_RECEIPT"), None, Some("NOT_FOUND")]);
    let bury = Bury { receipt: held[1].receipt.clone(), error: ErrorText::new("never") };
    assert_eq!(world.broker.bury(vec![bury]).await.unwrap()[0].code(), None);
    assert_eq!(world.states().await, (0, 0, 0, 1));
}

#[tokio::test]
async fn a_breaker_opens_probes_and_closes() {
    let breaker = Some(Some(BreakerConfig::default()));
    let world = World::with(QueueConfig { breaker, ..retry(Millis::ZERO, 100) }).await;
    let mut watch = world.broker.watch(None);
    world.put(6).await;
    for delivery in world.lease(4).await {
        world.nack(&delivery).await;
    }
    let change = event(&mut watch, "breaker").await;
    assert!(matches!(change.what, Happening::Breaker(change) if change.to == BreakerState::Open));
    assert!(world.lease(10).await.is_empty(), "nothing while it is open");
    let attempts: u32 = {
        let page = world.broker.list(ListRequest::new(world.queue.clone(), Filter::default())).await.unwrap();
        page.messages.iter().map(|message| message.progress.attempts).sum()
    };
    assert_eq!(attempts, 4, "no attempt is burned");
    let id =
        world.broker.list(ListRequest::new(world.queue.clone(), Filter::default())).await.unwrap().messages
            [0]
        .id();
    let why = world.broker.why(&world.queue, id).await.unwrap();
    assert!(why.obstacles.iter().any(|obstacle| matches!(obstacle, Obstacle::Breaker { .. })), "{why:?}");
    let poll = world.poll(world.call(10)).await;
    world.clock.advance(Millis::from_secs(30));
    let probe = done(poll).await;
    assert_eq!(probe.len(), 1, "one probe, whatever was asked for");
    assert_eq!(probe[0].message.progress.attempts, 1, "one that has not failed yet");
    assert!(world.lease(10).await.is_empty(), "one at a time");
    let poll = world.poll(world.call(10)).await;
    world.ack(&probe[0]).await;
    let first = done(poll).await;
    assert_eq!(first.len(), 1, "the ramp starts at one");
    world.ack(&first[0]).await;
    assert_eq!(world.lease(10).await.len(), 2, "and doubles");
}

#[tokio::test]
async fn a_probe_that_finds_nothing_frees_the_slot() {
    let breaker = Some(Some(BreakerConfig::default()));
    let world = World::with(QueueConfig { breaker, ..retry(Millis::ZERO, 1) }).await;
    world.put(4).await;
    for delivery in world.lease(4).await {
        world.nack(&delivery).await;
    }
    world.clock.advance(Millis::from_secs(30));
    assert!(world.lease(1).await.is_empty());
    world.put(1).await;
    assert_eq!(world.lease(1).await.len(), 1);
}

#[tokio::test]
async fn the_end_of_a_retry_makes_room_under_the_cap() {
    let config = QueueConfig { max_retries_in_flight: Some(NonZeroU32::new(1)), ..retry(Millis::ZERO, 9) };
    let world = World::with(config).await;
    world.put(2).await;
    for delivery in world.lease(2).await {
        world.nack(&delivery).await;
    }
    let first = world.lease(2).await;
    assert_eq!(first.len(), 1);
    let poll = world.poll(world.call(1)).await;
    world.ack(&first[0]).await;
    assert_eq!(done(poll).await.len(), 1);
}

#[tokio::test]
async fn an_operation_can_be_paused_goes_on_after_a_restart_and_is_done_once() {
    let world = World::new().await;
    world.put(30).await;
    for delivery in world.lease(30).await {
        let bury = Bury { receipt: delivery.receipt, error: ErrorText::new("never") };
        world.broker.bury(vec![bury]).await.unwrap();
    }
    let work = Work::Redrive { by: "ann".parse().unwrap(), reason: "fixed".parse().unwrap() };
    let new = NewOperation { queue: world.queue.clone(), filter: Filter::default(), work, rate: Some(10) };
    assert_eq!(world.broker.dry_run(&new).await.unwrap(), 30);
    assert_eq!(world.states().await.3, 30, "a dry run changes nothing");
    let id = world.broker.start_operation(new).await.unwrap().id;
    world.broker.pause_operation(id).await.unwrap();
    while world.broker.operation(id).await.unwrap().state != OperationState::Paused {
        tokio::task::yield_now().await;
    }
    let paused = world.broker.operation(id).await.unwrap();
    assert!(paused.progress.applied <= 10, "{paused:?}");
    let World { broker, _background: background, store, .. } = world;
    drop(broker);
    background.stop().await;
    let world = World::over(store, QueueConfig::default()).await;
    assert_eq!(world.broker.operation(id).await.unwrap(), paused, "paused it stays");
    world.broker.resume_operation(id).await.unwrap();
    while !world.broker.operation(id).await.unwrap().state.is_ended() {
        tokio::task::yield_now().await;
    }
    let ended = world.broker.operation(id).await.unwrap();
    assert_eq!((ended.state, ended.progress.applied), (OperationState::Done, 30));
    assert_eq!(world.states().await, (30, 0, 0, 0));
    let error = world.broker.cancel_operation(id).await.unwrap_err();
    assert_eq!(error.code(), "OPERATION_ENDED");
}

#[tokio::test]
async fn an_operation_that_is_cancelled_keeps_what_it_did() {
    let world = World::new().await;
    world.put(20).await;
    let work = Work::Discard { force: false };
    let new = NewOperation { queue: world.queue.clone(), filter: Filter::default(), work, rate: Some(1) };
    let id = world.broker.start_operation(new).await.unwrap().id;
    world.broker.cancel_operation(id).await.unwrap();
    while !world.broker.operation(id).await.unwrap().state.is_ended() {
        tokio::task::yield_now().await;
    }
    let ended = world.broker.operation(id).await.unwrap();
    assert_eq!(ended.state, OperationState::Cancelled);
    assert_eq!(world.states().await.0, 20 - ended.progress.applied);
    assert_eq!(world.broker.operations(None, Limit::MAX).await.unwrap(), [ended]);
}

#[tokio::test]
async fn an_idempotency_key_takes_one_message_once_and_refuses_another() {
    let world = World::new().await;
    let keyed = |body: &'static str| {
        let mut message = world.message();
        message.idempotency_key = Some(DedupKey::new("order-1").unwrap());
        message.draft.spec.body = Body::new(body).unwrap();
        message
    };
    let put = async |body| world.broker.enqueue(vec![keyed(body)], false).await.unwrap().remove(0);
    let EnqueueOutcome::Enqueued { id, .. } = put("a").await.unwrap() else { panic!("it is new") };
    assert_eq!(put("a").await.unwrap(), EnqueueOutcome::Duplicate { id });
    assert_eq!(put("b").await.unwrap_err().code(), "IDEMPOTENCY_KEY_REUSED");
    let held = world.lease(1).await.remove(0);
    world.ack(&held).await;
    assert_eq!(put("a").await.unwrap(), EnqueueOutcome::Duplicate { id }, "also when the first is gone");
    assert_eq!(put("b").await.unwrap_err().code(), "IDEMPOTENCY_KEY_REUSED");
}

#[tokio::test]
async fn a_queue_comes_into_being_by_its_first_message_only_where_that_is_wanted() {
    let world = World::new().await;
    let elsewhere = |name: &str| {
        let mut message = world.message();
        message.queue = QueueName::new(name).unwrap();
        message
    };
    let refused = world.broker.enqueue(vec![elsewhere("new"), world.message()], false).await.unwrap();
    let refused: Vec<EnqueueOutcome> = refused.into_iter().map(Result::unwrap).collect();
    assert!(
        matches!(refused[0], EnqueueOutcome::Refused(_))
            && matches!(refused[1], EnqueueOutcome::Enqueued { .. })
    );
    let settings = BrokerConfig { auto_create: true, ..BrokerConfig::default() };
    let store: Arc<dyn Store> = Arc::<MemoryStore>::clone(&world.store);
    let clock = Arc::<ManualClock>::clone(&world.clock);
    let (broker, _background) = Broker::start(store, clock, settings).await.unwrap();
    let taken =
        broker.enqueue(vec![elsewhere("new"), world.message(), elsewhere("newer")], false).await.unwrap();
    assert!(taken.iter().all(|outcome| matches!(outcome, Ok(EnqueueOutcome::Enqueued { .. }))), "{taken:?}");
    let together = broker.enqueue(vec![elsewhere("one"), elsewhere("two")], true).await.unwrap();
    assert!(
        together.iter().all(|outcome| matches!(outcome, Ok(EnqueueOutcome::Enqueued { .. }))),
        "{together:?}"
    );
}

#[tokio::test]
async fn why_names_everything_that_is_in_the_way() {
    let world = World::new().await;
    let first = world.put_one(|_| ()).await;
    let second = world.put_one(|_| ()).await;
    let why = world.broker.why(&world.queue, first).await.unwrap();
    assert_eq!((why.obstacles, why.earliest), (Vec::new(), Some(world.broker.now())));
    let why = world.broker.why(&world.queue, second).await.unwrap();
    assert_eq!(why.obstacles, [Obstacle::Behind { messages: 1, at_least: false }]);
    let later = world.put_one(|message| message.draft.visible = When::After(Millis::from_secs(9))).await;
    let end = world.broker.now().plus(Millis::from_secs(60));
    let pause = PauseQueue { name: world.queue.clone(), key: None, pause: Some(Pause::Until(end)) };
    world.broker.pause_queue(pause).await.unwrap();
    let why = world.broker.why(&world.queue, later).await.unwrap();
    let due = world.broker.now().plus(Millis::from_secs(9));
    assert!(why.obstacles.contains(&Obstacle::NotDue { until: due }), "{why:?}");
    assert!(why.obstacles.contains(&Obstacle::QueuePaused { until: Some(end) }), "{why:?}");
}

#[tokio::test]
async fn a_lowered_cap_is_carried_out_by_the_sweeper_at_once() {
    let world = World::with(retry(Millis::ZERO, 5)).await;
    world.put(1).await;
    for _ in 0..2 {
        let delivery = world.lease(1).await.remove(0);
        world.nack(&delivery).await;
    }
    let update = UpdateQueue { name: world.queue.clone(), config: retry(Millis::ZERO, 2), expected: None };
    world.broker.update_queue(update).await.unwrap();
    world.until_states((0, 0, 0, 1)).await;
}

#[tokio::test]
async fn a_broker_that_ends_answers_its_polls_and_hands_nothing_out() {
    let world = World::new().await;
    let poll = world.poll(world.call(1)).await;
    let World { broker, _background: background, queue, .. } = world;
    background.stop().await;
    assert!(done(poll).await.is_empty());
    let call = LeaseCall::new(queue, Limit::ONE, ConsumerName::default());
    assert!(broker.lease(call).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_history_of_a_queue_is_sampled() {
    let world = World::new().await;
    while world.broker.history(&world.queue).await.unwrap().is_empty() {
        world.clock.advance(Millis::from_secs(10));
        tokio::task::yield_now().await;
    }
    world.put(3).await;
    let seen = world.broker.history(&world.queue).await.unwrap().len();
    world.clock.advance(Millis::from_secs(10));
    while world.broker.history(&world.queue).await.unwrap().len() == seen {
        tokio::task::yield_now().await;
    }
    let last = *world.broker.history(&world.queue).await.unwrap().last().unwrap();
    assert_eq!((last.enqueued, last.states.of(State::Ready)), (3, 3));
}
