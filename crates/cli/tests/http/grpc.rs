//! gRPC on the same port: every call, the stream, and that both APIs see the same truth.

use std::time::Duration;

use redrive_wire::v1;
use redrive_wire::v1::consume_request::Request;
use redrive_wire::v1::redrive_client::RedriveClient;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};
use tonic_types::StatusExt;

use crate::server::Server;

async fn client(server: &Server) -> RedriveClient<Channel> {
    RedriveClient::connect(format!("http://{}", server.address())).await.unwrap()
}

fn message(body: &'static str) -> v1::NewMessage {
    v1::NewMessage { body: body.into(), ..v1::NewMessage::default() }
}

fn to(queue: &str, messages: Vec<v1::NewMessage>) -> v1::EnqueueRequest {
    v1::EnqueueRequest { queue: queue.to_owned(), messages, all_or_nothing: false }
}

fn from(queue: &str, limit: u32) -> v1::LeaseRequest {
    v1::LeaseRequest { queue: queue.to_owned(), limit, ..v1::LeaseRequest::default() }
}

fn reason(status: &Status) -> String {
    status.get_details_error_info().map(|info| info.reason).unwrap_or_default()
}

/// Immediate retries without a cap, as the oldest of the documents that asked for this system has it.
async fn create_endless(client: &mut RedriveClient<Channel>, name: &str) {
    let retry = v1::Retry { max_attempts: Some(0), base_delay_ms: Some(0), ..v1::Retry::default() };
    let config = Some(v1::QueueConfig { retry: Some(retry), ..v1::QueueConfig::default() });
    client.create_queue(v1::CreateQueueRequest { name: name.to_owned(), config }).await.unwrap();
}

async fn nack(client: &mut RedriveClient<Channel>, receipt: &str) -> v1::SettleResult {
    let item = v1::Nack { receipt: receipt.to_owned(), error: "boom".to_owned(), ..v1::Nack::default() };
    client.nack(v1::NackRequest { items: vec![item] }).await.unwrap().into_inner().results.remove(0)
}

#[tokio::test]
async fn a_nacked_message_is_ready_again_with_one_more_attempt() {
    let server = Server::start();
    let mut client = client(&server).await;
    create_endless(&mut client, "orders").await;
    let put = v1::NewMessage { fairness_key: "tenant".to_owned(), ..message("work") };
    client.enqueue(to("orders", vec![put])).await.unwrap();
    let mut tokens = Vec::new();
    for attempt in 1..=25 {
        let leased = client.lease(from("orders", 1)).await.unwrap().into_inner().messages.remove(0);
        assert_eq!((leased.attempts, leased.fairness_key.as_str()), (attempt, "tenant"));
        tokens.push(leased.lease_id);
        let result = nack(&mut client, &leased.receipt).await;
        assert_eq!(
            (result.code.as_str(), result.state.as_str()),
            ("", "ready"),
            "at once, and without a cap"
        );
        let stats = server.stats("orders").await;
        assert_eq!(
            (&stats["states"]["leased"], &stats["states"]["ready"]),
            (&json!(0), &json!(1)),
            "the lease is gone"
        );
        let again = nack(&mut client, &leased.receipt).await;
        assert_eq!(again.code, "LEASE_LOST", "the same lease cannot fail twice");
    }
    assert!(tokens.is_sorted_by(|a, b| a < b), "fencing tokens grow");
    let last = client.lease(from("orders", 1)).await.unwrap().into_inner().messages.remove(0);
    let ack = v1::AckRequest { items: vec![v1::Ack { receipt: last.receipt.clone() }] };
    assert_eq!(client.ack(ack).await.unwrap().into_inner().results[0].code, "");
    assert_eq!(nack(&mut client, &last.receipt).await.code, "NOT_FOUND", "and one that is gone is not found");
}

#[tokio::test]
async fn both_apis_see_the_same_truth() {
    let server = Server::start();
    let mut client = client(&server).await;
    let results =
        client.enqueue(to("orders", vec![message("a"), message("b")])).await.unwrap().into_inner().results;
    let over_http = server.get(&format!("/v1/queues/orders/messages/{}", results[0].id)).await.body;
    assert_eq!((&over_http["body"], &over_http["state"]), (&json!("a"), &json!("ready")));
    let leased = server.lease("orders", json!({"limit": 2})).await;
    let receipt = leased[0]["receipt"].as_str().unwrap().to_owned();
    let release =
        v1::ReleaseRequest { items: vec![v1::Release { receipt: receipt.clone(), delay_ms: None }] };
    assert_eq!(client.release(release).await.unwrap().into_inner().results[0].code, "");
    server.post("/v1/leases/ack", json!({"receipt": receipt})).await.refused(409, "LEASE_LOST");
    let second = leased[1]["receipt"].as_str().unwrap().to_owned();
    let extend = v1::ExtendRequest {
        items: vec![v1::Extend {
            receipt: second.clone(),
            lease_ms: Some(90_000),
            checkpoint: Some("p7".into()),
        }],
    };
    let extended = client.extend(extend).await.unwrap().into_inner().results.remove(0);
    assert!(extended.deadline_ms.is_some());
    let bury = v1::BuryRequest { items: vec![v1::Bury { receipt: second, error: "never".to_owned() }] };
    let buried = client.bury(bury).await.unwrap().into_inner().results.remove(0);
    assert_eq!((buried.state.as_str(), buried.dead_reason.as_str()), ("dead", "buried"));
    let stats =
        client.queue_stats(v1::QueueStatsRequest { name: "orders".to_owned() }).await.unwrap().into_inner();
    assert_eq!((stats.ready, stats.leased, stats.dead), (1, 0, 1));
    assert_eq!((server.count("orders", "ready").await, server.count("orders", "dead").await), (1, 1));
}

#[tokio::test]
async fn queues_are_administered() {
    let server = Server::start();
    let mut client = client(&server).await;
    create_endless(&mut client, "orders").await;
    let name = || "orders".to_owned();
    let queue = client.get_queue(v1::GetQueueRequest { name: name() }).await.unwrap().into_inner();
    let retry = queue.config.clone().unwrap().retry.unwrap();
    assert_eq!((retry.max_attempts, retry.base_delay_ms, retry.multiplier), (Some(0), Some(0), None));
    let config = Some(v1::QueueConfig { max_waiting: Some(1), ..v1::QueueConfig::default() });
    let update = v1::UpdateQueueRequest {
        name: name(),
        config: config.clone(),
        expected_version: Some(queue.version),
    };
    let updated = client.update_queue(update).await.unwrap().into_inner();
    assert_eq!(updated.config.unwrap().max_waiting, Some(1));
    let stale = v1::UpdateQueueRequest { name: name(), config, expected_version: Some(queue.version) };
    let stale = client.update_queue(stale).await.unwrap_err();
    assert_eq!((stale.code(), reason(&stale).as_str()), (Code::Aborted, "VERSION_MISMATCH"));
    let full =
        client.enqueue(to("orders", vec![message("a"), message("b")])).await.unwrap().into_inner().results;
    assert_eq!((full[0].code.as_str(), full[1].code.as_str(), full[1].retryable), ("", "QUEUE_FULL", true));
    let pause = v1::PauseQueueRequest { name: name(), key: None, until_ms: None };
    assert!(client.pause_queue(pause).await.unwrap().into_inner().paused);
    assert!(client.lease(from("orders", 1)).await.unwrap().into_inner().messages.is_empty());
    let resume = v1::ResumeQueueRequest { name: name(), key: None };
    assert!(!client.resume_queue(resume).await.unwrap().into_inner().paused);
    let list = client.list_queues(v1::ListQueuesRequest::default()).await.unwrap().into_inner();
    assert_eq!(list.queues.len(), 1);
    let kept = client.delete_queue(v1::DeleteQueueRequest { name: name(), force: false }).await.unwrap_err();
    assert_eq!((kept.code(), reason(&kept).as_str()), (Code::FailedPrecondition, "QUEUE_NOT_EMPTY"));
    client.delete_queue(v1::DeleteQueueRequest { name: name(), force: true }).await.unwrap();
    let gone = client.get_queue(v1::GetQueueRequest { name: name() }).await.unwrap_err();
    assert_eq!((gone.code(), reason(&gone).as_str()), (Code::NotFound, "QUEUE_NOT_FOUND"));
}

#[tokio::test]
async fn what_is_wrong_is_refused_by_its_field() {
    let server = Server::start();
    let mut client = client(&server).await;
    let field = |status: &Status| {
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        status.get_details_bad_request().unwrap().field_violations.remove(0).field
    };
    let queue = client.enqueue(to("a b", vec![message("x")])).await.unwrap_err();
    assert_eq!(field(&queue), "queue");
    let priority = v1::NewMessage { priority: Some(300), ..message("x") };
    assert_eq!(field(&client.enqueue(to("q", vec![priority])).await.unwrap_err()), "priority");
    let large = v1::NewMessage { body: vec![0; 1024 * 1024 + 1].into(), ..v1::NewMessage::default() };
    assert_eq!(field(&client.enqueue(to("q", vec![large])).await.unwrap_err()), "body");
    let many = vec![message("x"); 1001];
    assert_eq!(field(&client.enqueue(to("q", many)).await.unwrap_err()), "batch");
    assert_eq!(field(&client.lease(from("q", 1001)).await.unwrap_err()), "limit");
    let lane = v1::LeaseRequest { lane: 9, ..from("q", 1) };
    assert_eq!(field(&client.lease(lane).await.unwrap_err()), "lane");
    let missing = client.lease(from("nowhere", 1)).await.unwrap_err();
    assert_eq!((missing.code(), reason(&missing).as_str()), (Code::NotFound, "QUEUE_NOT_FOUND"));
    let forged = nack(&mut client, "forged").await;
    assert_eq!(forged.code, "INVALID_RECEIPT");
}

/// A stream of a client.
struct Consumer {
    say: mpsc::Sender<v1::ConsumeRequest>,
    hear: Streaming<v1::ConsumeResponse>,
}

impl Consumer {
    async fn start(client: &mut RedriveClient<Channel>, queue: &str, credit: u32) -> Self {
        let (say, said) = mpsc::channel(16);
        let start = v1::ConsumeStart { queue: queue.to_owned(), credit, ..v1::ConsumeStart::default() };
        say.send(v1::ConsumeRequest { request: Some(Request::Start(start)) }).await.unwrap();
        let hear = client.consume(ReceiverStream::new(said)).await.unwrap().into_inner();
        Self { say, hear }
    }

    async fn say(&self, request: Request) {
        self.say.send(v1::ConsumeRequest { request: Some(request) }).await.unwrap();
    }

    async fn hear(&mut self) -> v1::ConsumeResponse {
        let heard = tokio::time::timeout(Duration::from_secs(30), self.hear.message()).await;
        heard.expect("nothing was said").unwrap().expect("the stream goes on")
    }

    /// Waits for so many messages.
    async fn messages(&mut self, count: usize) -> Vec<v1::Message> {
        let mut messages = Vec::new();
        while messages.len() < count {
            messages.extend(self.hear().await.messages);
        }
        messages
    }

    /// Waits for so many answers to settlements; messages that come meanwhile are kept.
    async fn settled(&mut self, count: usize, messages: &mut Vec<v1::Message>) -> Vec<v1::SettleResult> {
        let mut settled = Vec::new();
        while settled.len() < count {
            let heard = self.hear().await;
            settled.extend(heard.settled);
            messages.extend(heard.messages);
        }
        settled
    }
}

fn acks(messages: &[v1::Message]) -> Request {
    let acks = messages.iter().map(|message| v1::Ack { receipt: message.receipt.clone() }).collect();
    Request::Settle(v1::ConsumeSettle { acks, ..v1::ConsumeSettle::default() })
}

#[tokio::test]
async fn a_stream_pushes_as_much_as_there_is_credit_for_and_settles() {
    let server = Server::start();
    let mut client = client(&server).await;
    create_endless(&mut client, "orders").await;
    let mut consumer = Consumer::start(&mut client, "orders", 3).await;
    client.enqueue(to("orders", vec![message("x"); 10])).await.unwrap();
    let first = consumer.messages(3).await;
    assert_eq!((first.len(), server.count("orders", "leased").await), (3, 3), "not one more than the credit");
    consumer.say(acks(&first[..2])).await;
    let mut more = Vec::new();
    let settled = consumer.settled(2, &mut more).await;
    assert!(settled.iter().all(|result| result.code.is_empty()), "{settled:?}");
    assert_eq!(settled[0].receipt, first[0].receipt);
    while more.len() < 2 {
        more.extend(consumer.hear().await.messages);
    }
    let (one, other) = (&first[2], &more[0]);
    consumer
        .say(Request::Settle(v1::ConsumeSettle {
            nacks: vec![v1::Nack {
                receipt: one.receipt.clone(),
                error: "boom".to_owned(),
                ..v1::Nack::default()
            }],
            releases: vec![v1::Release { receipt: other.receipt.clone(), delay_ms: Some(60_000) }],
            extends: vec![v1::Extend {
                receipt: more[1].receipt.clone(),
                lease_ms: Some(60_000),
                checkpoint: None,
            }],
            buries: vec![v1::Bury { receipt: "forged".to_owned(), error: String::new() }],
            acks: Vec::new(),
        }))
        .await;
    let mut rest = Vec::new();
    let settled = consumer.settled(4, &mut rest).await;
    let codes: Vec<&str> = settled.iter().map(|result| result.code.as_str()).collect();
    assert_eq!(codes, ["", "", "", "INVALID_RECEIPT"]);
    consumer.say(Request::Credit(1000)).await;
    while rest.len() < 6 {
        rest.extend(consumer.hear().await.messages);
    }
    assert!(rest.iter().any(|message| message.attempts == 2), "the retry came back on the stream");
    consumer.say(acks(&rest)).await;
    consumer.settled(rest.len(), &mut Vec::new()).await;
    drop(consumer);
    let stats = server.stats("orders").await;
    assert_eq!((&stats["states"]["leased"], &stats["states"]["delayed"]), (&json!(1), &json!(1)));
}

#[tokio::test]
async fn a_settlement_with_one_wrong_part_settles_nothing() {
    let server = Server::start();
    let mut client = client(&server).await;
    client.enqueue(to("orders", vec![message("x"); 2])).await.unwrap();
    let mut consumer = Consumer::start(&mut client, "orders", 2).await;
    let held = consumer.messages(2).await;
    let release = v1::Release { receipt: held[1].receipt.clone(), delay_ms: Some(u64::MAX) };
    let acks = vec![v1::Ack { receipt: held[0].receipt.clone() }];
    let settle = v1::ConsumeSettle { acks, releases: vec![release], ..v1::ConsumeSettle::default() };
    consumer.say(Request::Settle(settle)).await;
    let refused = consumer.hear.message().await.unwrap_err();
    assert_eq!(refused.get_details_bad_request().unwrap().field_violations[0].field, "delay_ms");
    assert_eq!(server.count("orders", "leased").await, 2, "the ack beside it was not done");
}

#[tokio::test]
async fn a_stream_that_ends_leaves_its_leases_and_a_wrong_one_is_refused() {
    let server = Server::start();
    let mut client = client(&server).await;
    client.enqueue(to("orders", vec![message("x")])).await.unwrap();
    let mut consumer = Consumer::start(&mut client, "orders", 1).await;
    let held = consumer.messages(1).await;
    drop(consumer);
    let ack = v1::AckRequest { items: vec![v1::Ack { receipt: held[0].receipt.clone() }] };
    assert_eq!(client.ack(ack).await.unwrap().into_inner().results[0].code, "");
    let begin = async |client: &mut RedriveClient<Channel>, request: Option<Request>| {
        let stream = tokio_stream::iter([v1::ConsumeRequest { request }]);
        client.consume(stream).await.map(|_| ()).unwrap_err().code()
    };
    assert_eq!(begin(&mut client, Some(Request::Credit(1))).await, Code::InvalidArgument);
    assert_eq!(begin(&mut client, None).await, Code::InvalidArgument);
    let nowhere = v1::ConsumeStart { queue: "nowhere".to_owned(), credit: 1, ..v1::ConsumeStart::default() };
    assert_eq!(begin(&mut client, Some(Request::Start(nowhere))).await, Code::NotFound);
    let greedy = v1::ConsumeStart { queue: "orders".to_owned(), credit: 1001, ..v1::ConsumeStart::default() };
    assert_eq!(begin(&mut client, Some(Request::Start(greedy))).await, Code::InvalidArgument);
}

#[tokio::test]
async fn events_are_watched() {
    let server = Server::start();
    let mut client = client(&server).await;
    let watch = v1::WatchEventsRequest { queue: "orders".to_owned(), after: None };
    let mut events = client.watch_events(watch).await.unwrap().into_inner();
    server.create("other", json!({})).await;
    client.enqueue(to("orders", vec![message("x")])).await.unwrap();
    let created = events.message().await.unwrap().unwrap();
    assert_eq!(
        (created.r#type.as_str(), created.action.as_str(), created.queue.as_str()),
        ("queue", "created", "orders")
    );
    let enqueued = events.message().await.unwrap().unwrap();
    assert_eq!((enqueued.r#type.as_str(), enqueued.count), ("enqueue", 1));
}
