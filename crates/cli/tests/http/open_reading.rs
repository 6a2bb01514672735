//! Where reading is open, somebody without a key is told how much happens: counts, no names, and nothing else anywhere.

use std::collections::BTreeSet;
use std::time::Duration;

use redrive_wire::v1;
use redrive_wire::v1::redrive_client::RedriveClient;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tonic::transport::Endpoint;

use crate::server::{Answer, Server, generate_key};

/// What is in every name, text and body, and must be in no answer.
const CANARY: &str = "canary";

async fn open(server: &Server, token: Option<&str>, after: Option<&str>) -> Response {
    let mut request = server.request_as(token, Method::GET, "/v1/events");
    if let Some(after) = after {
        request = request.header("last-event-id", after);
    }
    request.send().await.unwrap()
}

/// What the stream says up to the end of the last event that is wanted.
async fn read_until(events: &mut Response, last: &str) -> String {
    let mut text = String::new();
    loop {
        let piece = tokio::time::timeout(Duration::from_secs(30), events.chunk()).await;
        let piece = piece.expect("no such event came").unwrap().expect("the stream goes on");
        text.push_str(std::str::from_utf8(&piece).unwrap());
        if text.split_once(&format!("event: {last}\n")).is_some_and(|(_, rest)| rest.contains("\n\n")) {
            return text;
        }
    }
}

/// Lets everything happen that is told of: to a queue, a subscription, a breaker, and to messages. An ack comes last.
async fn live(server: &Server) {
    let queue = &format!("{CANARY}-queue");
    server.create(queue, json!({"retry": {"max_attempts": 1}, "breaker": {}})).await;
    let subscription = json!({"id": format!("{CANARY}-sub"), "pattern": format!("{CANARY}.*"),
        "target": {"kind": "queue", "queue": queue}});
    assert_eq!(server.post("/v1/subscriptions", subscription).await.status, 201);
    let message =
        json!({"body": CANARY, "type": CANARY, "fairness_key": CANARY, "headers": {CANARY: CANARY}});
    for _ in 0..3 {
        server.enqueue(queue, message.clone()).await;
    }
    let leased = server.lease(queue, json!({"limit": 3, "consumer": CANARY})).await;
    let receipt = |n: usize| leased[n]["receipt"].clone();
    let nack = json!({"receipt": receipt(0), "error": CANARY});
    assert_eq!(server.post("/v1/leases/nack", nack).await.status, 200);
    assert_eq!(server.post("/v1/leases/release", json!({"receipt": receipt(1)})).await.status, 200);
    let tripped = server.post(&format!("/v1/queues/{queue}/breaker/trip"), json!({})).await;
    assert!(tripped.status < 300, "{tripped:?}");
    let paused = server.post(&format!("/v1/queues/{queue}/pause"), json!({})).await;
    assert_eq!(paused.status, 200, "{paused:?}");
    assert_eq!(server.post("/v1/leases/ack", json!({"receipt": receipt(2)})).await.status, 204);
}

#[tokio::test]
async fn without_a_key_there_are_counts_and_no_names() {
    let server = Server::keyed(&["--open-reading"]);
    live(&server).await;
    let known = server.token.clone();
    let told = read_until(&mut open(&server, known.as_deref(), Some("0")).await, "ack").await;
    for word in ["event: queue\n", "event: breaker\n", "event: subscription\n", "canary-queue", "canary-sub"]
    {
        assert!(told.contains(word), "who has a key is told everything: {word}: {told}");
    }

    let text = read_until(&mut open(&server, None, Some("0")).await, "ack").await;
    assert!(!text.contains(CANARY), "{text}");
    let mut kinds = BTreeSet::new();
    for event in text.split("\n\n").filter(|event| event.contains("data: ")) {
        let line = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        let data: Value = serde_json::from_str(line("data: ")).unwrap();
        let fields = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(fields(&data), ["payload", "timestamp", "type"], "{event}");
        assert_eq!(fields(&data["payload"]), ["count", "dlq_count", "triggered_by"], "{event}");
        assert_eq!(data["type"], line("event: "), "{event}");
        assert!(data["payload"]["count"].is_u64() && data["payload"]["dlq_count"].is_u64(), "{event}");
        kinds.insert(line("event: ").to_owned());
    }
    let about_messages = ["ack", "enqueue", "lease", "move_to_dlq", "nack", "requeue"];
    assert_eq!(kinds.iter().map(String::as_str).collect::<Vec<_>>(), about_messages);
    read_until(&mut open(&server, None, Some("900")).await, "lagged").await;
}

#[tokio::test]
async fn a_key_that_does_not_work_is_refused_all_the_same() {
    let server = Server::keyed(&["--open-reading"]);
    let (id, revoked) = server.key(&[("read", "*")], json!({})).await;
    let (_, narrow) = server.key(&[("produce", "*")], json!({})).await;
    assert_eq!(server.post(&format!("/v1/keys/{id}/revoke"), json!({})).await.status, 200);
    let ask = async |token: &str| Answer::of(open(&server, Some(token), None).await).await;
    ask(&revoked).await.refused(401, "KEY_REVOKED");
    ask(&generate_key()).await.refused(401, "KEY_INVALID");
    ask("x").await.refused(401, "KEY_INVALID");
    ask(&narrow).await.refused(403, "FORBIDDEN");
    // An empty header is no key, and it is shown.
    let empty = server.client.get(server.url("/v1/events")).header("authorization", "").send().await.unwrap();
    assert_eq!(empty.status(), 401);
}

#[tokio::test]
async fn nothing_else_is_open() {
    let server = Server::keyed(&["--open-reading"]);
    let description = server.get("/openapi.json").await.body;
    let mut asked = 0;
    for (path, methods) in description["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            if matches!(&**path, "/healthz" | "/readyz" | "/v1/events" | "/v1/time") {
                continue;
            }
            let id = "01987654-3210-7abc-8def-0123456789ab";
            let path = ["{queue}", "{topic}", "{pattern}", "{id}", "{replay}"]
                .into_iter()
                .fold(path.clone(), |path, name| {
                    path.replace(name, if name == "{queue}" { "q" } else { id })
                });
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let request = server.request_as(None, method, &path).json(&json!({}));
            Answer::of(request.send().await.unwrap()).await.refused(401, "KEY_MISSING");
            asked += 1;
        }
    }
    assert!(asked > 80, "{asked}");
    // How busy one queue is, or whether it is there, would be a name after all.
    for queue in ["q", "none"] {
        let one = server.request_as(None, Method::GET, &format!("/v1/events?queue={queue}"));
        Answer::of(one.send().await.unwrap()).await.refused(401, "KEY_MISSING");
    }
    let endpoint = Endpoint::from_shared(server.url("")).unwrap();
    let mut client = RedriveClient::new(endpoint.connect().await.unwrap());
    let watched = client.watch_events(v1::WatchEventsRequest::default()).await;
    assert_eq!(watched.unwrap_err().code(), tonic::Code::Unauthenticated);
}

#[tokio::test]
async fn reading_is_open_only_where_somebody_opened_it() {
    let closed = Server::keyed(&[]);
    Answer::of(open(&closed, None, None).await).await.refused(401, "KEY_MISSING");
    // Where nobody needs a key, there is nothing to open.
    let server = Server::with(&["--open-reading"]);
    server.enqueue("orders", json!({})).await;
    assert!(read_until(&mut open(&server, None, Some("0")).await, "enqueue").await.contains("orders"));
}
