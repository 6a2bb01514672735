//! The event bus through its APIs: publishing, topics, subscriptions, webhooks and breakers.

mod grpc;
mod publish;
mod receiver;
mod subscriptions;
mod topics;
mod webhooks;

use serde_json::{Value, json};

use crate::server::Server;

/// Lets webhooks call what the test itself listens at.
const ALLOW: [&str; 2] = ["--webhook-allow", "127.0.0.1:*"];

/// A server with a clock that only the test moves, whose webhooks may come here.
fn with_webhooks() -> Server {
    Server::with(&["--test-clock", ALLOW[0], ALLOW[1]])
}

/// Subscribes, and answers the subscription.
async fn subscribe(server: &Server, request: Value) -> Value {
    let answer = server.post("/v1/subscriptions", request).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.body
}

/// Has the events of a pattern put into a queue that is created for it.
async fn subscribe_queue(server: &Server, id: &str, pattern: &str, queue: &str) {
    server.create(queue, json!({})).await;
    let target = json!({"kind": "queue", "queue": queue});
    subscribe(server, json!({"id": id, "pattern": pattern, "target": target})).await;
}

/// Publishes events, and answers what became of each.
async fn publish(server: &Server, topic: &str, events: Value) -> Vec<Value> {
    let answer = server.post(&format!("/v1/topics/{topic}/events"), json!({"events": events})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body["results"].as_array().unwrap().clone()
}
