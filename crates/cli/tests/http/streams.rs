//! The live stream of events.

use serde_json::json;

use crate::leases::next_event;
use crate::server::Server;

#[tokio::test]
async fn events_are_streamed_as_they_happen() {
    let server = Server::start();
    let mut events = server.client.get(server.url("/v1/events")).send().await.unwrap();
    assert_eq!(events.headers()["content-type"], "text/event-stream");
    server.create("orders", json!({"retry": {"max_attempts": 1}})).await;
    assert_eq!(next_event(&mut events, "queue").await["payload"]["action"], "created");
    for _ in 0..2 {
        server.enqueue("orders", json!({"body": "x"})).await;
    }
    let enqueue = next_event(&mut events, "enqueue").await;
    assert_eq!(
        (&enqueue["payload"]["queue"], &enqueue["payload"]["triggered_by"]),
        (&json!("orders"), &json!("producer"))
    );
    let leased = server.lease("orders", json!({"limit": 2})).await;
    next_event(&mut events, "lease").await;
    server.post("/v1/leases/ack", json!({"receipt": leased[0]["receipt"]})).await;
    next_event(&mut events, "ack").await;
    server.post("/v1/leases/nack", json!({"receipt": leased[1]["receipt"]})).await;
    next_event(&mut events, "nack").await;
    assert_eq!(next_event(&mut events, "move_to_dlq").await["payload"]["count"], 1);
}

#[tokio::test]
async fn a_reader_that_comes_back_goes_on_where_it_was_or_is_told() {
    let server = Server::start();
    for name in ["a", "b", "c"] {
        server.create(name, json!({})).await;
    }
    let read = async |last: &str, query: &str| {
        let request =
            server.client.get(server.url(&format!("/v1/events{query}"))).header("last-event-id", last);
        request.send().await.unwrap()
    };
    let mut back = read("1", "").await;
    assert_eq!(next_event(&mut back, "queue").await["payload"]["queue"], "b");
    let mut one = read("0", "?queue=c").await;
    assert_eq!(next_event(&mut one, "queue").await["payload"]["queue"], "c");
    let mut other_life = read("900", "").await;
    next_event(&mut other_life, "lagged").await;
    assert_eq!(read("x", "").await.status(), 400);
}
