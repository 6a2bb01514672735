//! Fresh work never starves behind work that fails, from one end of the server to the other.

use serde_json::{Value, json};

use crate::server::Server;

/// Messages that always fail.
const POISON: usize = 10_000;
/// What is handed out at a time, and the window in which shares are counted.
const WINDOW: usize = 1_000;

async fn enqueue(server: &Server, kind: &str, count: usize) {
    for start in (0..count).step_by(WINDOW) {
        let messages: Vec<Value> =
            (start..count.min(start + WINDOW)).map(|_| json!({"body": "x", "type": kind})).collect();
        let answer = server.post("/v1/queues/orders/messages/batch", json!({"messages": messages})).await;
        assert_eq!(answer.status, 200);
    }
}

async fn lease(server: &Server, request: Value) -> (Vec<Value>, Vec<Value>) {
    let leased = server.lease("orders", request).await;
    leased.into_iter().partition(|message| message["type"] == "fresh")
}

/// Acks what is fresh, and lets the rest fail.
async fn settle(server: &Server, (fresh, poison): &(Vec<Value>, Vec<Value>)) {
    for (verb, messages) in [("ack", fresh), ("nack", poison)] {
        let items: Vec<Value> =
            messages.iter().map(|message| json!({"receipt": message["receipt"]})).collect();
        if !items.is_empty() {
            let answer = server.post(&format!("/v1/leases/{verb}/batch"), json!({"items": items})).await;
            let results = answer.body["results"].as_array().unwrap();
            assert!(results.iter().all(|result| result["ok"] == true), "{verb}");
        }
    }
}

/// A queue with messages that have all failed once.
async fn start(config: Value) -> Server {
    let server = Server::with(&["--durability", "none"]);
    let mut config = config;
    config["retry"] = json!({"base_delay_ms": 0, "max_attempts": 3});
    server.create("orders", config).await;
    enqueue(&server, "poison", POISON).await;
    for _ in 0..POISON / WINDOW {
        settle(&server, &lease(&server, json!({"limit": WINDOW, "lane": "fresh"})).await).await;
    }
    server
}

async fn all_dead_with_their_history(server: &Server) {
    assert_eq!(server.count("orders", "dead").await, POISON as u64);
    let page = server.get("/v1/queues/orders/dead?limit=100").await.body;
    for message in page["messages"].as_array().unwrap() {
        assert_eq!((&message["attempts"], message["failures"].as_array().unwrap().len()), (&json!(3), 3));
    }
}

#[tokio::test]
async fn the_fresh_share_holds_in_every_window_and_what_fails_ends_dead() {
    let server = start(json!({"retry_share": 0.2})).await;
    while server.count("orders", "dead").await < POISON as u64 {
        enqueue(&server, "fresh", WINDOW).await;
        let window = lease(&server, json!({"limit": WINDOW})).await;
        assert!(window.0.len() * 10 >= WINDOW * 8 || window.1.is_empty(), "{} of {WINDOW}", window.0.len());
        assert!(window.1.is_empty() || window.1.len() * 10 >= WINDOW, "and retries are not starved either");
        settle(&server, &window).await;
    }
    all_dead_with_their_history(&server).await;
}

#[tokio::test]
async fn separate_retries_take_nothing_from_fresh_work() {
    let server = start(json!({"retry_lane": "separate"})).await;
    while server.count("orders", "dead").await < POISON as u64 {
        enqueue(&server, "fresh", WINDOW).await;
        let fresh = lease(&server, json!({"limit": WINDOW})).await;
        assert_eq!((fresh.0.len(), fresh.1.len()), (WINDOW, 0));
        settle(&server, &fresh).await;
        settle(&server, &lease(&server, json!({"limit": WINDOW, "lane": "retry"})).await).await;
    }
    all_dead_with_their_history(&server).await;
}

#[tokio::test]
async fn a_cap_on_retries_in_flight_is_never_exceeded() {
    let server = start(json!({"max_retries_in_flight": 50})).await;
    for _ in 0..20 {
        enqueue(&server, "fresh", WINDOW).await;
        let first = lease(&server, json!({"limit": WINDOW})).await;
        assert_eq!((first.0.len(), first.1.len()), (WINDOW - 50, 50));
        let second = lease(&server, json!({"limit": 10})).await;
        assert!(second.1.is_empty(), "the cap counts what is leased");
        settle(&server, &first).await;
        settle(&server, &second).await;
    }
}
