//! Taking work and settling it.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Answer, Server};

#[tokio::test]
async fn each_verb_settles_one_lease() {
    let server = Server::start();
    server
        .create("orders", json!({"retry": {"base_delay_ms": 60_000, "max_delay_ms": null, "jitter": "none"}}))
        .await;
    for n in 0..5 {
        server.enqueue("orders", json!({"body": n.to_string()})).await;
    }
    let leased =
        server.lease("orders", json!({"limit": 5, "consumer": "worker-1", "lease_ms": 20_000})).await;
    let receipts: Vec<&Value> = leased.iter().map(|message| &message["receipt"]).collect();
    assert_eq!(leased[0]["lease"]["consumer"], "worker-1");
    let ids: Vec<u64> = leased
        .iter()
        .map(|message| message["lease"]["lease_id"].as_str().unwrap().parse().unwrap())
        .collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "fencing tokens grow");

    assert_eq!(server.post("/v1/leases/ack", json!({"receipt": receipts[0]})).await.status, 204);
    let nacked = server.post("/v1/leases/nack", json!({"receipt": receipts[1], "error": "503"})).await;
    assert_eq!((&nacked.body["state"], &nacked.body["delay_ms"]), (&json!("delayed"), &json!(60_000)));
    assert_eq!(nacked.body["delay_rule"], "backoff");
    let extended =
        server.post("/v1/leases/extend", json!({"receipt": receipts[2], "lease_ms": 90_000})).await;
    assert!(extended.body["deadline"].as_str() > leased[2]["lease"]["deadline"].as_str());
    let released = server.post("/v1/leases/release", json!({"receipt": receipts[3]})).await;
    assert_eq!(released.status, 200);
    let buried = server.post("/v1/leases/bury", json!({"receipt": receipts[4], "error": "bad"})).await;
    assert_eq!((&buried.body["state"], &buried.body["dead_reason"]), (&json!("dead"), &json!("buried")));
    assert_eq!(
        server.stats("orders").await["states"],
        json!({"ready": 1, "delayed": 1, "leased": 1, "dead": 1, "done": 0})
    );
    server.post("/v1/leases/ack", json!({"receipt": receipts[0]})).await.refused(404, "NOT_FOUND");
    server.post("/v1/leases/ack", json!({"receipt": receipts[1]})).await.refused(409, "LEASE_LOST");
    server.post("/v1/leases/ack", json!({"receipt": "forged"})).await.refused(400, "INVALID_RECEIPT");
    let again = server.lease("orders", json!({})).await;
    assert_eq!(
        (&again[0]["attempts"], &again[0]["deliveries"]),
        (&json!(1), &json!(2)),
        "a release is refunded"
    );
}

#[tokio::test]
async fn batches_answer_each_item() {
    let server = Server::start();
    for n in 0..10 {
        server.enqueue("orders", json!({"body": n.to_string()})).await;
    }
    let leased = server.lease("orders", json!({"limit": 10})).await;
    let receipt = |n: usize| leased[n]["receipt"].clone();
    let batch = async |verb: &str, items: Value| {
        let answer = server.post(&format!("/v1/leases/{verb}/batch"), json!({"items": items})).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body["results"].as_array().unwrap().clone()
    };
    let acks =
        batch("ack", json!([{"receipt": receipt(0)}, {"receipt": "x"}, {"receipt": receipt(0)}])).await;
    assert_eq!(
        acks,
        [
            json!({"ok": true}),
            json!({"ok": false, "code": "INVALID_RECEIPT"}),
            json!({"ok": false, "code": "NOT_FOUND"})
        ]
    );
    let nacks = batch(
        "nack",
        json!([{"receipt": receipt(1), "delay_ms": 500, "exact": true}, {"receipt": receipt(0)}]),
    )
    .await;
    assert_eq!(
        (&nacks[0]["outcome"]["delay_ms"], &nacks[0]["outcome"]["delay_rule"]),
        (&json!(500), &json!("exactly"))
    );
    assert_eq!(nacks[1], json!({"ok": false, "code": "NOT_FOUND"}));
    let extends = batch("extend", json!([{"receipt": receipt(2), "checkpoint_base64": "cGFnZSA3"}])).await;
    assert!(extends[0]["outcome"]["deadline"].is_string());
    let releases = batch("release", json!([{"receipt": receipt(3), "delay_ms": 1000}])).await;
    assert!(releases[0]["outcome"]["visible_at"].is_string());
    let buries = batch("bury", json!([{"receipt": receipt(4), "error": "never"}])).await;
    assert_eq!(buries[0]["outcome"]["dead_reason"], "buried");
    let message =
        server.get(&format!("/v1/queues/orders/messages/{}", leased[2]["id"].as_str().unwrap())).await.body;
    assert_eq!(message["checkpoint_base64"], "cGFnZSA3");
    let wrong = server
        .post(
            "/v1/leases/nack/batch",
            json!({"items": [{"receipt": receipt(5)}, {"receipt": receipt(6), "checkpoint_base64": "!"}]}),
        )
        .await;
    wrong.refused(400, "INVALID_ARGUMENT");
    assert_eq!(wrong.body["errors"][0]["pointer"], "/items/1/checkpoint_base64");
    assert_eq!(server.count("orders", "leased").await, 6, "a batch that is refused changes nothing");
}

#[tokio::test]
async fn a_long_poll_is_answered_when_something_comes() {
    let server = Server::start();
    server.create("orders", json!({})).await;
    let request = server.request(Method::POST, "/v1/queues/orders/lease").header("prefer", "wait=30");
    let poll = tokio::spawn(async move { Answer::of(request.json(&json!({})).send().await.unwrap()).await });
    until_polls(&server, 1).await;
    let id = server.enqueue("orders", json!({"body": "x"})).await;
    let answer =
        tokio::time::timeout(Duration::from_secs(20), poll).await.expect("it was not woken").unwrap();
    assert_eq!(answer.body["messages"][0]["id"], id.as_str());
    assert!(
        server.lease("orders", json!({"wait_ms": 1})).await.is_empty(),
        "and one that waits in vain is told"
    );
}

/// Waits until so many polls are parked.
async fn until_polls(server: &Server, polls: u64) {
    let wanted = format!("redrive_waiting_polls {polls}\n");
    while !server.get("/metrics").await.text.contains(&wanted) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_poll_whose_client_goes_away_takes_nothing_with_it() {
    let server = Server::start();
    server.create("orders", json!({})).await;
    let request = server.request(Method::POST, "/v1/queues/orders/lease").json(&json!({"wait_ms": 50_000}));
    let poll = tokio::spawn(async move { request.send().await });
    until_polls(&server, 1).await;
    poll.abort();
    until_polls(&server, 0).await;
    server.enqueue("orders", json!({"body": "x"})).await;
    assert_eq!(server.lease("orders", json!({})).await.len(), 1);
}

#[tokio::test]
async fn lanes_and_filters_choose() {
    let server = Server::start();
    server.create("orders", json!({"retry": {"base_delay_ms": 0}, "retry_lane": "separate"})).await;
    server.enqueue("orders", json!({"body": "a", "type": "paid", "source": "shop"})).await;
    server.enqueue("orders", json!({"body": "b", "type": "sent", "source": "shop"})).await;
    let sent = server.lease("orders", json!({"types": ["sent"], "limit": 5})).await;
    assert_eq!((sent.len(), &sent[0]["body"]), (1, &json!("b")));
    assert!(server.lease("orders", json!({"sources": ["till"]})).await.is_empty());
    server.post("/v1/leases/nack", json!({"receipt": sent[0]["receipt"]})).await;
    let fresh = server.lease("orders", json!({"limit": 5})).await;
    assert_eq!((fresh.len(), &fresh[0]["body"]), (1, &json!("a")), "retries are for those who ask");
    let retry = server.lease("orders", json!({"lane": "retry"})).await;
    assert_eq!((&retry[0]["body"], &retry[0]["attempts"]), (&json!("b"), &json!(2)));
}

/// The timeline of an overdue message: back when its time comes, and dead at its cap.
#[tokio::test]
async fn a_lease_that_runs_out_is_requeued_or_dead_when_its_time_comes() {
    let server = Server::with_clock();
    server.create("orders", json!({"retry": {"max_attempts": 2}})).await;
    let mut events = server.client.get(server.url("/v1/events")).send().await.unwrap();
    let id = server.enqueue("orders", json!({"body": "x"})).await;
    let own =
        server.enqueue("orders", json!({"body": "y", "lease_timeout_ms": 60_000, "max_attempts": 1})).await;
    let path = format!("/v1/queues/orders/messages/{id}");
    let first = server.lease("orders", json!({"limit": 2})).await;
    server.advance(29_999).await;
    assert_eq!(server.get(&path).await.body["state"], "leased", "not a moment early");
    server.advance(1).await;
    until_state(&server, &path, "ready").await;
    let requeue = next_event(&mut events, "requeue").await;
    let expected = json!({"queue": "orders", "count": 1, "dlq_count": 0, "triggered_by": "scheduler"});
    assert_eq!(requeue["payload"], expected);
    assert!(requeue["timestamp"].is_u64() && requeue["type"] == "requeue");

    let second = server.lease("orders", json!({})).await;
    assert_eq!((&second[0]["id"], &second[0]["attempts"]), (&json!(id), &json!(2)));
    server.advance(20_000).await;
    assert_eq!(
        server
            .post("/v1/leases/extend", json!({"receipt": second[0]["receipt"], "lease_ms": 30_000}))
            .await
            .status,
        200
    );
    server.advance(10_000).await;
    let mine = format!("/v1/queues/orders/messages/{own}");
    until_state(&server, &mine, "dead").await;
    assert_eq!(
        server.get(&mine).await.body["dead_reason"],
        "max_attempts",
        "its own lease time and its own cap"
    );
    assert_eq!(server.get(&path).await.body["state"], "leased", "extend postpones it");
    let dead = next_event(&mut events, "move_to_dlq").await;
    assert_eq!(dead["payload"]["count"], 1);
    server.advance(20_000).await;
    until_state(&server, &path, "dead").await;
    let message = server.get(&path).await.body;
    let causes: Vec<&str> =
        message["failures"].as_array().unwrap().iter().map(|one| one["cause"].as_str().unwrap()).collect();
    assert_eq!(causes, ["expire", "expire"]);
    server.post("/v1/leases/ack", json!({"receipt": first[0]["receipt"]})).await.refused(409, "LEASE_LOST");
}

async fn until_state(server: &Server, path: &str, state: &str) {
    while server.get(path).await.body["state"] != state {
        tokio::task::yield_now().await;
    }
}

/// The next event of that name.
pub(crate) async fn next_event(events: &mut reqwest::Response, name: &str) -> Value {
    let mut text = String::new();
    loop {
        let piece = tokio::time::timeout(Duration::from_secs(30), events.chunk()).await;
        let piece = piece.expect("no such event came").unwrap().expect("the stream goes on");
        text.push_str(std::str::from_utf8(&piece).unwrap());
        while let Some(end) = text.find("\n\n") {
            let event: String = text.drain(..end + 2).collect();
            let line =
                |prefix: &str| event.lines().find_map(|line| line.strip_prefix(prefix).map(str::to_owned));
            if line("event: ").as_deref() == Some(name) {
                return serde_json::from_str(&line("data: ").unwrap()).unwrap();
            }
        }
    }
}

#[tokio::test]
async fn an_operator_sees_extends_releases_and_requeues_leases() {
    let server = Server::with_clock();
    server.create("orders", json!({})).await;
    let id = server.enqueue("orders", json!({"body": "x"})).await;
    let leased = server.lease("orders", json!({"consumer": "worker-9"})).await;
    server.advance(4_000).await;
    let listed = server.get("/v1/queues/orders/leases?consumer=worker-9").await.body;
    let lease = &listed["leases"][0]["lease"];
    assert_eq!(
        (&lease["consumer"], &lease["age_ms"], &lease["overdue"]),
        (&json!("worker-9"), &json!(4_000), &json!(false))
    );
    let path = |verb: &str| format!("/v1/queues/orders/leases/{id}/{verb}");
    let extended = server.post(&path("extend"), json!({"lease_ms": 120_000})).await;
    assert!(extended.body["deadline"].as_str() > lease["deadline"].as_str(), "{extended:?}");
    assert_eq!(
        server.post("/v1/queues/orders/requeue_expired", json!({"limit": 10})).await.body,
        json!({"count": 0})
    );
    assert_eq!(server.post(&path("release"), json!({})).await.status, 200);
    server.post("/v1/leases/ack", json!({"receipt": leased[0]["receipt"]})).await.refused(409, "LEASE_LOST");
    server.post(&path("release"), json!({})).await.refused(409, "LEASE_LOST");
    assert_eq!(
        server.post("/v1/requeue_expired", json!({"error": "by hand"})).await.body,
        json!({"count": 0})
    );
    server.post("/v1/requeue_expired", json!({"limit": 0})).await.refused(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn an_operator_who_names_a_lease_touches_no_later_one() {
    let server = Server::with_clock();
    server.create("orders", json!({"lease_timeout_ms": 30_000})).await;
    let id = server.enqueue("orders", json!({"body": "x"})).await;
    let path = |verb: &str| format!("/v1/queues/orders/leases/{id}/{verb}");
    let first = server.lease("orders", json!({"consumer": "worker-1"})).await;
    server.advance(30_000).await;
    let second = server.lease("orders", json!({"consumer": "worker-2"})).await;
    let named = |leased: &[Value]| json!({"lease_id": leased[0]["lease"]["lease_id"]});

    let before = server.get(&format!("/v1/queues/orders/messages/{id}")).await.body;
    assert_eq!(before["lease"]["consumer"], "worker-2", "{before}");
    for verb in ["extend", "release"] {
        server.post(&path(verb), named(&first)).await.refused(409, "LEASE_LOST");
        for wrong in [json!("+1"), json!("18446744073709551616"), json!("")] {
            let refused = server.post(&path(verb), json!({"lease_id": wrong})).await;
            refused.refused(400, "INVALID_ARGUMENT");
            assert_eq!(refused.body["errors"][0]["pointer"], "lease_id", "{refused:?}");
        }
        server.post(&path(verb), json!({"lease_id": 7})).await.refused(400, "INVALID_ARGUMENT");
    }
    let after = server.get(&format!("/v1/queues/orders/messages/{id}")).await.body;
    assert_eq!(after, before, "the second lease is untouched");

    let mut extend = named(&second);
    extend["lease_ms"] = json!(120_000);
    let extended = server.post(&path("extend"), extend).await;
    assert!(extended.body["deadline"].as_str() > before["lease"]["deadline"].as_str(), "{extended:?}");
    assert_eq!(server.post(&path("release"), named(&second)).await.status, 200);
    assert_eq!(server.count("orders", "ready").await, 1);
}

#[tokio::test]
async fn every_retry_writes_one_line() {
    let mut server = Server::start();
    server.create("orders", json!({"retry": {"base_delay_ms": 1500, "jitter": "none"}})).await;
    let id = server.enqueue("orders", json!({"body": "x", "type": "paid"})).await;
    let leased = server.lease("orders", json!({})).await;
    server.post("/v1/leases/nack", json!({"receipt": leased[0]["receipt"], "error": "boom"})).await;
    assert!(server.terminate().success());
    let log = std::fs::read_to_string(server.dir.path().join("log")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let retries: Vec<&Value> = lines.iter().filter(|line| line["target"] == "redrive::retry").collect();
    assert_eq!(retries.len(), 1);
    let line = retries[0];
    assert_eq!(line["level"], "WARN");
    for (field, value) in [
        ("event_id", json!(id)),
        ("event_type", json!("paid")),
        ("subscription_id", json!("")),
        ("attempt", json!(1)),
        ("max_attempts", json!(3)),
        ("delay_ms", json!(1500)),
        ("error", json!("boom")),
        ("queue", json!("orders")),
        ("message_id", json!(id)),
    ] {
        assert_eq!(line[field], value, "{field}: {line}");
    }
}

#[tokio::test]
async fn a_held_sweeper_leaves_what_is_overdue_where_it_is() {
    let server = Server::with_clock();
    let hold = async |held: bool| assert_eq!(server.post("/test/sweeper", json!(held)).await.status, 204);
    server.create("orders", json!({"lease_timeout_ms": 30_000})).await;
    server.enqueue("orders", json!({"body": "x"})).await;
    server.lease("orders", json!({"consumer": "worker-1"})).await;
    hold(true).await;
    hold(true).await;
    server.advance(3_600_000).await;
    let stats = server.stats("orders").await;
    assert_eq!((&stats["states"]["leased"], &stats["overdue"]), (&json!(1), &json!(1)), "{stats}");
    let leases = server.get("/v1/queues/orders/leases").await.body;
    assert_eq!(leases["leases"][0]["lease"]["overdue"], true, "{leases}");
    hold(false).await;
    assert_eq!(server.count("orders", "ready").await, 1, "what was due is swept before the answer");

    server.lease("orders", json!({})).await;
    let mut events = server.client.get(server.url("/v1/events")).send().await.unwrap();
    server.advance(30_000).await;
    assert_eq!(next_event(&mut events, "requeue").await["payload"]["triggered_by"], "scheduler");
}
