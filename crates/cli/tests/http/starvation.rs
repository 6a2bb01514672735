//! Fresh work never starves behind work that fails, from one end of the server to the other.

use serde_json::{Value, json};

use crate::server::Server;

/// Messages that always fail.
const POISON: usize = 10_000;
/// Dead letters that are sent back at once.
const DEAD: usize = 100_000;
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

/// Settles what was leased by that verb, all of it.
async fn settle_all(server: &Server, verb: &str, messages: &[Value]) {
    let items: Vec<Value> = messages.iter().map(|message| json!({"receipt": message["receipt"]})).collect();
    let answer = server.post(&format!("/v1/leases/{verb}/batch"), json!({"items": items})).await;
    let results = answer.body["results"].as_array().unwrap();
    assert!(results.iter().all(|result| result["ok"] == true), "{verb}");
}

/// Acks what is fresh, and lets the rest fail.
async fn settle(server: &Server, (fresh, poison): &(Vec<Value>, Vec<Value>)) {
    for (verb, messages) in [("ack", fresh), ("nack", poison)] {
        if !messages.is_empty() {
            settle_all(server, verb, messages).await;
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
    while server.count("orders", "dead").await < POISON as u64 {
        let retries = lease(&server, json!({"limit": WINDOW, "lane": "retry"})).await;
        assert_eq!((retries.0.len(), retries.1.len()), (0, 50), "nor where nothing else is wanted");
        settle(&server, &retries).await;
    }
    all_dead_with_their_history(&server).await;
}

#[tokio::test]
async fn a_redrive_of_very_many_takes_nothing_from_fresh_work() {
    let server = Server::with(&["--durability", "none"]);
    server.create("orders", json!({"retry_share": 0.2})).await;
    for _ in 0..DEAD / WINDOW {
        enqueue(&server, "poison", WINDOW).await;
        settle_all(&server, "bury", &server.lease("orders", json!({"limit": WINDOW})).await).await;
    }
    let started = server.post("/v1/queues/orders/dead/redrive", json!({"rate": 20_000})).await.body;
    assert_eq!(started["total"], DEAD);
    let operation = format!("/v1/operations/{}", started["id"].as_str().unwrap());
    let mut back = 0;
    loop {
        enqueue(&server, "fresh", WINDOW).await;
        let (fresh, redriven) = lease(&server, json!({"limit": WINDOW})).await;
        assert!(fresh.len() * 10 >= WINDOW * 8, "{} of {WINDOW} while letters come back", fresh.len());
        back += redriven.len();
        settle_all(&server, "ack", &[fresh, redriven].concat()).await;
        if server.get(&operation).await.body["state"] == "done" {
            break;
        }
    }
    while back < DEAD {
        let (fresh, redriven) = lease(&server, json!({"limit": WINDOW, "lane": "retry"})).await;
        assert!(fresh.is_empty() && !redriven.is_empty(), "{back} of {DEAD} came back");
        assert!(redriven.iter().all(|message| message["redrives"] == 1));
        back += redriven.len();
        settle_all(&server, "ack", &redriven).await;
    }
    assert_eq!(server.count("orders", "dead").await, 0);
}
