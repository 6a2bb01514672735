//! Queues.

use reqwest::Method;
use serde_json::json;

use crate::server::{Answer, Server};

#[tokio::test]
async fn a_queue_is_created_shown_changed_and_deleted() {
    let server = Server::start();
    let created = server
        .post(
            "/v1/queues",
            json!({"name": "orders", "config": {"lease_timeout_ms": 5000, "retry": {"max_attempts": null}}}),
        )
        .await;
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(created.headers["etag"], "\"1\"");
    assert_eq!(created.body["settings"]["lease_timeout_ms"], 5000);
    assert_eq!(created.body["settings"]["retry"]["max_attempts"], json!(null));
    assert_eq!(created.body["settings"]["retry"]["base_delay_ms"], 1000, "a default");
    assert_eq!(created.body["set"], json!(["lease_timeout_ms", "retry.max_attempts"]));
    assert_eq!(created.body["config"], json!({"lease_timeout_ms": 5000, "retry": {"max_attempts": null}}));
    server.post("/v1/queues", json!({"name": "orders"})).await.refused(409, "QUEUE_EXISTS");

    let changed = server.put("/v1/queues/orders", json!({"config": {"max_waiting": 1}})).await;
    assert_eq!((changed.status, &changed.body["config"]), (200, &json!({"max_waiting": 1})));
    let stale = server
        .request(Method::PUT, "/v1/queues/orders")
        .header("if-match", "\"1\"")
        .json(&json!({"config": {}}));
    Answer::of(stale.send().await.unwrap()).await.refused(412, "VERSION_MISMATCH");

    server.enqueue("orders", json!({"body": "1"})).await;
    let full = server.post("/v1/queues/orders/messages", json!({"body": "2"})).await;
    full.refused(429, "QUEUE_FULL");
    assert_eq!((&full.body["advice"], full.headers["retry-after"].to_str().unwrap()), (&json!("retry"), "1"));
    server.delete("/v1/queues/orders").await.refused(409, "QUEUE_NOT_EMPTY");
    assert_eq!(server.delete("/v1/queues/orders?force=true").await.status, 204);
    server.get("/v1/queues/orders").await.refused(404, "QUEUE_NOT_FOUND");
}

#[tokio::test]
async fn queues_are_listed_page_by_page() {
    let server = Server::start();
    for name in ["c", "a", "b"] {
        server.create(name, json!({})).await;
    }
    let first = server.get("/v1/queues?limit=2").await.body;
    let names = |page: &serde_json::Value| -> Vec<String> {
        page["queues"]
            .as_array()
            .unwrap()
            .iter()
            .map(|queue| queue["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&first), ["a", "b"]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let last = server.get(&format!("/v1/queues?limit=2&cursor={cursor}")).await.body;
    assert_eq!((names(&last), &last["next_cursor"]), (vec!["c".to_owned()], &json!(null)));
}

#[tokio::test]
async fn a_pause_gates_leases_until_its_end() {
    let server = Server::with_clock();
    server.create("orders", json!({})).await;
    server.enqueue("orders", json!({"body": "1", "fairness_key": "tenant"})).await;
    let paused = server.post("/v1/queues/orders/pause", json!({"for_ms": 10_000})).await;
    assert_eq!((paused.status, &paused.body["paused"]), (200, &json!(true)));
    assert!(server.lease("orders", json!({})).await.is_empty());
    server.advance(10_000).await;
    assert_eq!(server.get("/v1/queues/orders").await.body["paused"], json!(false));
    let key = server.post("/v1/queues/orders/pause", json!({"key": "tenant"})).await;
    assert_eq!(key.body["pauses"], json!([{"key": "tenant"}]));
    assert!(server.lease("orders", json!({})).await.is_empty());
    let resumed = server.post("/v1/queues/orders/resume", json!({"key": "tenant"})).await;
    assert_eq!(resumed.body["pauses"], json!([]));
    assert_eq!(server.lease("orders", json!({})).await.len(), 1);
    let both = json!({"for_ms": 1, "until": "2030-01-01T00:00:00Z"});
    server.post("/v1/queues/orders/pause", both).await.refused(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn weights_act_on_the_backlog_and_leave_the_rest_alone() {
    let server = Server::start();
    server.create("orders", json!({"lease_timeout_ms": 7000})).await;
    for n in 0..20 {
        let key = if n % 2 == 0 { "big" } else { "small" };
        server.enqueue("orders", json!({"body": "x", "fairness_key": key})).await;
    }
    let set = server.put("/v1/queues/orders/weights", json!({"big": 4})).await;
    assert_eq!((set.status, &set.body["config"]["lease_timeout_ms"]), (200, &json!(7000)));
    let leased = server.lease("orders", json!({"limit": 10})).await;
    let big = leased.iter().filter(|message| message["fairness_key"] == "big").count();
    assert_eq!(big, 8);
    server.put("/v1/queues/orders/weights", json!({"big": 0})).await.refused(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn stats_history_and_metrics_count_the_same() {
    let server = Server::start();
    for _ in 0..3 {
        server.enqueue("orders", json!({"body": "x", "type": "paid"})).await;
    }
    let leased = server.lease("orders", json!({})).await;
    server.post("/v1/leases/nack", json!({"receipt": leased[0]["receipt"], "error": "boom"})).await;
    let stats = server.stats("orders").await;
    assert_eq!(stats["states"], json!({"ready": 2, "delayed": 1, "leased": 0, "dead": 0, "done": 0}));
    assert_eq!((&stats["totals"]["enqueue"], &stats["totals"]["nack"]), (&json!(3), &json!(1)));
    let metrics = server.get("/metrics").await.text;
    for line in [
        "redrive_enqueued_total{queue=\"orders\"} 3",
        "redrive_retried_total{queue=\"orders\"} 1",
        "redrive_messages{queue=\"orders\",state=\"ready\"} 2",
        "redrive_type_retries_total{type=\"paid\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let types = server.get("/v1/types").await.body;
    assert_eq!((&types["types"][0]["type"], &types["types"][0]["retries"]), (&json!("paid"), &json!(1)));
    let history = server.get("/v1/queues/orders/history").await;
    assert_eq!((history.status, &history.body["interval_ms"]), (200, &json!(10_000)));
}

#[tokio::test]
async fn the_breaker_of_a_queue_can_be_seen_tripped_and_reset() {
    let server = Server::start();
    server.create("plain", json!({})).await;
    server.get("/v1/queues/plain/breaker").await.refused(409, "NO_BREAKER");
    server.create("orders", json!({"breaker": {}})).await;
    server.enqueue("orders", json!({"body": "x"})).await;
    assert_eq!(server.get("/v1/queues/orders/breaker").await.body["state"], "closed");
    assert_eq!(server.post("/v1/queues/orders/breaker/trip", json!({})).await.status, 204);
    let open = server.get("/v1/queues/orders/breaker").await.body;
    assert!(open["state"] == "open" && open["open_until"].is_string(), "{open}");
    assert!(server.lease("orders", json!({})).await.is_empty());
    assert_eq!(server.post("/v1/queues/orders/breaker/reset", json!({})).await.status, 204);
    assert_eq!(server.lease("orders", json!({})).await.len(), 1);
}
