//! Traces: which spans there are, in which trace, and what context travels with a message.

use std::sync::{Arc, Mutex};

use redrive_broker::{
    Attempted, BrokerConfig, Bury, Delivery, Extend, NewMessage, Release, Sent, Span, Target, TraceConfig,
    TraceParent, TraceRatio, Tracing,
};
use redrive_core::limits::HEADERS_BYTES_MAX;
use redrive_core::message::{Body, DedupKey, ErrorText, Headers, MessageId};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::time::Millis;
use redrive_store::{DeleteQueue, EnqueueOutcome, Filter, Limit, Selection};

use crate::world::{World, retry};

const PRODUCER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const REQUEST: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn parent(text: &str) -> TraceParent {
    TraceParent::parse(text).unwrap()
}

/// What was told of one span.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    span: Span,
    message: MessageId,
    /// `sent`, or the number of the attempt, how it ended, and what it failed of.
    what: String,
}

/// Keeps all that it is told.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<Told>>);

impl Recorder {
    fn take(&self) -> Vec<Told> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    fn one(&self) -> Told {
        let mut all = self.take();
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }
}

impl Tracing for Recorder {
    fn sent(&self, sent: Sent<'_>) {
        let what = "sent".to_owned();
        self.0.lock().unwrap().push(Told { span: sent.span, message: sent.message, what });
    }

    fn attempted(&self, attempted: Attempted<'_>) {
        let failure = attempted
            .failure
            .map(|failure| format!(" {}: {}", failure.cause, failure.error))
            .unwrap_or_default();
        let what = format!("{} {}{failure}", attempted.attempt, attempted.ended.as_str());
        self.0.lock().unwrap().push(Told { span: attempted.span, message: attempted.message, what });
    }
}

async fn traced(change: impl FnOnce(&mut TraceConfig), config: QueueConfig) -> (World, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    let mut traces = TraceConfig::new(Arc::<Recorder>::clone(&recorder));
    change(&mut traces);
    let settings = BrokerConfig { traces: Some(traces), ..BrokerConfig::default() };
    (World::set(World::store(), config, settings).await, recorder)
}

fn with_header(message: &mut NewMessage, value: &str) {
    message.draft.spec.headers = Headers::new([("traceparent".to_owned(), value.to_owned())]).unwrap();
}

async fn stored(world: &World, id: MessageId) -> Option<String> {
    let message = world.broker.get(&world.queue, id).await.unwrap();
    message.spec.headers.get("traceparent").map(str::to_owned)
}

fn carried(delivery: &Delivery) -> TraceParent {
    parent(delivery.message.spec.headers.get("traceparent").unwrap())
}

#[tokio::test]
async fn a_message_has_one_trace_with_a_span_for_each_attempt() {
    let (world, told) = traced(|_| (), retry(Millis::ZERO, 9)).await;
    let id = world.put_one(|message| with_header(message, PRODUCER)).await;
    let sent = told.one();
    assert_eq!((sent.what.as_str(), sent.message), ("sent", id));
    assert_eq!(sent.span.parent, Some(parent(PRODUCER).span_id()));
    assert_eq!(sent.span.context.trace_id(), parent(PRODUCER).trace_id());
    assert_eq!(stored(&world, id).await, Some(sent.span.context.to_string()));
    let mut spans = vec![sent.span.context.span_id()];
    for what in ["1 retried nack: boom", "2 acked"] {
        let leased_at = world.broker.now();
        let delivery = world.lease(1).await.remove(0);
        world.clock.advance(Millis::from_secs(2));
        if what.ends_with("acked") {
            world.ack(&delivery).await;
        } else {
            world.nack(&delivery).await;
            assert_eq!(stored(&world, id).await, Some(sent.span.context.to_string()), "as it was sent");
        }
        let attempt = told.one();
        assert_eq!((attempt.what.as_str(), attempt.message), (what, id));
        assert_eq!(attempt.span.parent, Some(sent.span.context.span_id()));
        assert_eq!(
            attempt.span.context,
            carried(&delivery),
            "what the consumer does is a part of the attempt"
        );
        assert_eq!(attempt.span.context.trace_id(), parent(PRODUCER).trace_id());
        assert_eq!((attempt.span.start, attempt.span.end), (leased_at, world.broker.now()));
        spans.push(attempt.span.context.span_id());
    }
    spans.dedup();
    assert_eq!(spans.len(), 3, "each has an id of its own");
}

#[tokio::test]
async fn the_context_of_the_request_stands_in_for_that_of_the_message() {
    let (world, told) = traced(|_| (), QueueConfig::default()).await;
    let trace_of = |told: Told| told.span.context.trace_id();
    world.put_one(|message| message.request = Some(parent(REQUEST))).await;
    assert_eq!(trace_of(told.one()), parent(REQUEST).trace_id());
    let both = |message: &mut NewMessage, own: &str| {
        with_header(message, own);
        message.request = Some(parent(REQUEST));
    };
    world.put_one(|message| both(message, PRODUCER)).await;
    assert_eq!(trace_of(told.one()), parent(PRODUCER).trace_id());
    world.put_one(|message| both(message, "nonsense")).await;
    assert_eq!(trace_of(told.one()), parent(REQUEST).trace_id());
    world.put(1).await;
    let alone = told.one();
    assert_eq!(alone.span.parent, None, "a trace of its own");
    let unsampled = PRODUCER.replace("-01", "-00");
    let id = world.put_one(|message| with_header(message, &unsampled)).await;
    assert_eq!(stored(&world, id).await, Some(unsampled.clone()));
    let last = world.lease(5).await.remove(4);
    assert_eq!(carried(&last), parent(&unsampled), "it travels on");
    world.ack(&last).await;
    assert_eq!(told.take(), [], "and is not recorded");
}

#[tokio::test]
async fn without_tracing_the_context_of_a_request_travels_with_its_messages() {
    let world = World::new().await;
    let id = world.put_one(|message| message.request = Some(parent(REQUEST))).await;
    assert_eq!(stored(&world, id).await.as_deref(), Some(REQUEST));
    let own = |message: &mut NewMessage, own: &str| {
        with_header(message, own);
        message.request = Some(parent(REQUEST));
    };
    for header in [PRODUCER, "nonsense"] {
        let id = world.put_one(|message| own(message, header)).await;
        assert_eq!(stored(&world, id).await.as_deref(), Some(header), "what a producer wrote stays");
    }
    world.put(1).await;
    let held = world.lease(4).await;
    assert_eq!(carried(&held[0]), parent(REQUEST));
    assert_eq!(held[3].message.spec.headers, Headers::default());
}

#[tokio::test]
async fn a_message_that_is_full_is_taken_without_a_context() {
    let (world, told) = traced(|_| (), QueueConfig::default()).await;
    let full = |message: &mut NewMessage| {
        let value = "x".repeat(HEADERS_BYTES_MAX - 1);
        message.draft.spec.headers = Headers::new([("h".to_owned(), value)]).unwrap();
    };
    let id = world.put_one(full).await;
    assert_eq!(told.one().what, "sent");
    let delivery = world.lease(1).await.remove(0);
    assert_eq!((stored(&world, id).await, delivery.message.spec.headers.get("traceparent")), (None, None));
    world.ack(&delivery).await;
    assert_eq!(told.one().what, "1 acked");
    let mebibyte = || {
        let mut message = world.message();
        message.draft.spec.body = Body::new(vec![0; 1024 * 1024]).unwrap();
        message
    };
    let full = world.broker.enqueue((0..16).map(|_| mebibyte()).collect(), true).await.unwrap();
    assert!(full.iter().all(|outcome| matches!(outcome, Ok(EnqueueOutcome::Enqueued { .. }))), "{full:?}");
    assert_eq!(told.take().len(), 16);
}

#[tokio::test]
async fn only_what_is_in_its_queue_was_sent() {
    let (world, told) = traced(|_| (), QueueConfig::default()).await;
    let keyed = |request: &str| {
        let mut message = world.message();
        message.idempotency_key = Some(DedupKey::new("order-1").unwrap());
        with_header(&mut message, request);
        message
    };
    let nowhere = NewMessage { queue: QueueName::new("nowhere").unwrap(), ..world.message() };
    let batch = vec![keyed(PRODUCER), nowhere, world.message()];
    let outcomes = world.broker.enqueue(batch, false).await.unwrap();
    assert!(matches!(outcomes[1], Ok(EnqueueOutcome::Refused(_))));
    assert_eq!(told.take().len(), 2);
    let again = world.broker.enqueue(vec![keyed(REQUEST)], false).await.unwrap();
    assert!(
        matches!(again[0], Ok(EnqueueOutcome::Duplicate { .. })),
        "the same message, another try: {again:?}"
    );
    assert_eq!(told.take(), []);
}

#[tokio::test]
async fn every_end_of_a_lease_ends_its_attempt() {
    let (world, told) = traced(|_| (), retry(Millis::ZERO, 3)).await;
    world.put(1).await;
    told.take();
    let held = world.lease(1).await.remove(0);
    let release = Release { target: Target::Receipt(held.receipt), delay: None };
    world.broker.release(vec![release]).await.unwrap();
    assert_eq!(told.one().what, "1 released");
    let held = world.lease(1).await.remove(0);
    let current = Target::Message(world.queue.clone(), held.message.id());
    world.broker.release(vec![Release { target: current, delay: None }]).await.unwrap();
    assert_eq!(told.one().what, "1 released", "by an operator");
    let held = world.lease(1).await.remove(0);
    world.clock.advance(Millis::from_secs(20));
    let extend =
        Extend { target: Target::Receipt(held.receipt), time: Some(Millis::from_secs(30)), checkpoint: None };
    world.broker.extend(vec![extend]).await.unwrap();
    assert_eq!(told.take(), [], "it goes on");
    world.clock.advance(Millis::from_secs(30));
    world.until_states((1, 0, 0, 0)).await;
    assert!(told.one().what.starts_with("1 expired expire: "));
    world.lease(1).await;
    world.clock.advance(Millis::from_secs(30));
    let error = Some(ErrorText::new("ended by hand"));
    world.broker.requeue_expired(Some(world.queue.clone()), Limit::MAX, error).await.unwrap();
    assert_eq!(told.one().what, "2 expired expire: ended by hand");
    let held = world.lease(1).await.remove(0);
    world.nack(&held).await;
    assert_eq!(told.one().what, "3 dead nack: boom");
    world.put(1).await;
    told.take();
    let held = world.lease(1).await.remove(0);
    let bury = Bury { receipt: held.receipt, error: ErrorText::new("never") };
    world.broker.bury(vec![bury]).await.unwrap();
    assert_eq!(told.one().what, "1 dead bury: never");
}

#[tokio::test]
async fn no_more_attempts_are_remembered_than_the_limit_and_each_gives_its_place_back() {
    let (world, told) = traced(|traces| traces.attempts_max = 2, QueueConfig::default()).await;
    let untraced = async |count: u32| {
        let text = world.broker.metrics_text().await.unwrap();
        assert!(text.contains(&format!("redrive_attempts_untraced_total {count}\n")), "{text}");
    };
    world.put(3).await;
    let contexts: Vec<TraceParent> = told.take().iter().map(|sent| sent.span.context).collect();
    let held = world.lease(3).await;
    untraced(1).await;
    assert_eq!(carried(&held[2]), contexts[2], "what it was sent with");
    for delivery in &held {
        world.ack(delivery).await;
    }
    assert_eq!(told.take().len(), 2);
    world.put(4).await;
    world.lease(2).await;
    let all = Selection::new(world.queue.clone(), Filter::ids([held[0].message.id()]));
    assert_eq!(world.broker.discard(all, true).await.unwrap().applied.len(), 0);
    let all = Selection::new(world.queue.clone(), Filter::default());
    assert_eq!(world.broker.discard(all, true).await.unwrap().applied.len(), 4, "also what is leased");
    world.put(2).await;
    world.lease(2).await;
    untraced(1).await;
    let delete = DeleteQueue { name: world.queue.clone(), force: true };
    world.broker.delete_queue(delete).await.unwrap();
    let create = redrive_store::CreateQueue { name: world.queue.clone(), config: QueueConfig::default() };
    world.broker.create_queue(create).await.unwrap();
    world.put(2).await;
    world.lease(2).await;
    untraced(1).await;
}

#[tokio::test]
async fn what_another_instance_settles_is_forgotten_in_time() {
    let (world, told) = traced(|traces| traces.attempts_max = 1, QueueConfig::default()).await;
    world.put(2).await;
    told.take();
    let elsewhere = World::over(Arc::clone(&world.store), QueueConfig::default()).await;
    let held = world.lease(1).await.remove(0);
    elsewhere.ack(&held).await;
    world.clock.advance(Millis::from_secs(90));
    let held = world.lease(1).await.remove(0);
    world.ack(&held).await;
    assert_eq!(told.one().what, "1 acked");
}

#[tokio::test]
async fn a_ratio_of_nothing_records_nothing_of_its_own() {
    let (world, told) =
        traced(|traces| traces.ratio = TraceRatio::new(0.0).unwrap(), QueueConfig::default()).await;
    world.put(1).await;
    let held = world.lease(1).await.remove(0);
    assert!(!carried(&held).is_sampled(), "and says so to the consumer");
    world.ack(&held).await;
    assert_eq!(told.take(), []);
    world.put_one(|message| with_header(message, PRODUCER)).await;
    assert_eq!(told.one().what, "sent", "what somebody else samples is recorded");
}
