//! The server as one of several, on whatever store they share.

use std::time::Duration;

use reqwest::Response;
use serde_json::{Value, json};

use crate::server::Server;
use crate::shared::{SharedStore, eventually, on_every_store};

on_every_store!(
    a_message_lives_and_dies,
    a_poll_at_one_instance_wakes_for_an_enqueue_at_another,
    events_of_one_instance_reach_the_watchers_of_another,
    what_a_sweeper_does_is_seen_once_at_another_instance,
    an_instance_that_ends_leaves_its_lock_to_another,
);

async fn a_message_lives_and_dies<S: SharedStore>() {
    let store = S::new().await;
    let server = store.instance(&[]);
    let slow = json!({"retry": {"max_attempts": 2, "base_delay_ms": 60_000, "max_delay_ms": null, "jitter": "none"}});
    server.create("orders", slow).await;
    for n in 0..3 {
        server.enqueue("orders", json!({"body": n.to_string()})).await;
    }
    let leased = server.lease("orders", json!({"limit": 3, "lease_ms": 600_000})).await;
    let receipts: Vec<&Value> = leased.iter().map(|message| &message["receipt"]).collect();
    assert_eq!(server.post("/v1/leases/ack", json!({"receipt": receipts[0]})).await.status, 204);
    server.post("/v1/leases/ack", json!({"receipt": receipts[0]})).await.refused(404, "NOT_FOUND");
    let nacked = server.post("/v1/leases/nack", json!({"receipt": receipts[1], "error": "503"})).await;
    assert_eq!((&nacked.body["state"], &nacked.body["delay_ms"]), (&json!("delayed"), &json!(60_000)));
    let states = json!({"ready": 0, "delayed": 1, "leased": 1, "dead": 0, "done": 0});
    assert_eq!(server.stats("orders").await["states"], states);

    // Another process finds all of it, receipts included.
    drop(server);
    let server = store.instance(&[]);
    assert_eq!(server.stats("orders").await["states"], states);
    assert_eq!(server.post("/v1/leases/bury", json!({"receipt": receipts[2]})).await.status, 200);
    let redriven = server.post("/v1/queues/orders/dead/redrive", json!({"reason": "mended"})).await;
    assert!(redriven.status < 300, "{redriven:?}");
    let again = server.lease("orders", json!({"wait_ms": 30_000})).await.remove(0);
    assert_eq!((&again["id"], &again["redrives"]), (&leased[2]["id"], &json!(1)));
}

async fn a_poll_at_one_instance_wakes_for_an_enqueue_at_another<S: SharedStore>() {
    let store = S::new().await;
    // Where nothing is told, nobody looks before the test is over.
    let quiet = ["--config", "quiet.toml"];
    let start = || {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(quiet[1]);
        std::fs::write(&path, "overdue_check_interval_ms = 600000\n").unwrap();
        let server = store.instance(&["--config", path.to_str().unwrap()]);
        (server, dir)
    };
    let ((one, _keep), (other, _keep_too)) = (start(), start());
    one.create("orders", json!({})).await;
    let request = one.client.post(one.url("/v1/queues/orders/lease")).json(&json!({"wait_ms": 50_000}));
    let poll = tokio::spawn(async move { request.send().await.unwrap().json::<Value>().await.unwrap() });
    eventually("the poll waits", async || {
        one.get("/metrics").await.text.contains("redrive_waiting_polls 1\n").then_some(())
    })
    .await;
    let id = other.enqueue("orders", json!({"body": "x"})).await;
    assert_eq!(poll.await.unwrap()["messages"][0]["id"], json!(id));
}

/// The stream of events of an instance. None is passed over.
struct Events {
    stream: Response,
    text: String,
}

impl Events {
    async fn next(&mut self) -> Value {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let event: String = self.text.drain(..end + 2).collect();
                let Some(data) = event.lines().find_map(|line| line.strip_prefix("data: ")) else { continue };
                return serde_json::from_str(data).unwrap();
            }
            let piece = tokio::time::timeout(Duration::from_mins(1), self.stream.chunk()).await;
            let piece = piece.expect("something comes").unwrap().expect("the stream goes on");
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// The next event of that kind.
    async fn next_of(&mut self, kind: &str) -> Value {
        loop {
            let event = self.next().await;
            if event["type"] == kind {
                return event;
            }
        }
    }
}

/// Watches `one`, once it hears of what happens at `other`.
async fn watched(one: &Server, other: &Server) -> Events {
    let stream = one.client.get(one.url("/v1/events")).send().await.unwrap();
    let mut events = Events { stream, text: String::new() };
    // Until it listens, an instance hears nothing of the others. The first event that arrives says that it does.
    let mut made = 0;
    eventually("an event of the other instance", async || {
        other.create(&format!("probe-{made}"), json!({})).await;
        made += 1;
        let heard = tokio::time::timeout(Duration::from_secs(1), events.next_of("queue"));
        heard.await.ok()
    })
    .await;
    events
}

async fn events_of_one_instance_reach_the_watchers_of_another<S: SharedStore>() {
    let store = S::new().await;
    let (one, other) = (store.instance(&[]), store.instance(&[]));
    let mut events = watched(&one, &other).await;
    other.enqueue("orders", json!({"body": "x"})).await;
    let enqueued = events.next_of("enqueue").await;
    assert_eq!((&enqueued["payload"]["queue"], &enqueued["payload"]["count"]), (&json!("orders"), &json!(1)));
}

async fn what_a_sweeper_does_is_seen_once_at_another_instance<S: SharedStore>() {
    let store = S::new().await;
    let sweeper = store.instance(&[]);
    let held = eventually("one sweeps", async || store.sweeper().await).await;
    let watcher = store.instance(&[]);
    let retry =
        |attempts: u32| json!({"retry": {"max_attempts": attempts, "base_delay_ms": 0, "jitter": "none"}});
    sweeper.create("again", retry(2)).await;
    sweeper.create("once", retry(1)).await;
    let mut events = watched(&watcher, &sweeper).await;
    for queue in ["again", "once"] {
        sweeper.enqueue(queue, json!({"body": "x"})).await;
        assert_eq!(sweeper.lease(queue, json!({"lease_ms": 100})).await.len(), 1);
    }
    let (mut requeued, mut died) = (Vec::new(), Vec::new());
    let mut told = false;
    loop {
        let event = events.next().await;
        match event["type"].as_str().unwrap() {
            "requeue" => requeued.push(event["payload"].clone()),
            "move_to_dlq" => died.push(event["payload"].clone()),
            "queue" if event["payload"]["queue"] == "last" => break,
            _ => {}
        }
        // Whatever is told twice is told before what happened later at the same instance.
        if !told && requeued.len() == 2 && !died.is_empty() {
            sweeper.create("last", json!({})).await;
            told = true;
        }
    }
    requeued.sort_by_key(|payload| payload["queue"].to_string());
    let swept = |queue: &str, count: u64, died: u64| json!({"queue": queue, "count": count, "dlq_count": died, "triggered_by": "scheduler"});
    assert_eq!(requeued, [swept("again", 1, 0), swept("once", 0, 1)]);
    let [died] = died.as_slice() else { panic!("it died once: {died:?}") };
    assert_eq!((&died["queue"], &died["count"]), (&json!("once"), &json!(1)));
    assert_eq!(store.sweeper().await.unwrap().token, held.token, "it was the other one that swept");
}

async fn an_instance_that_ends_leaves_its_lock_to_another<S: SharedStore>() {
    let store = S::new().await;
    let mut one = store.instance(&[]);
    let held = eventually("one sweeps", async || store.sweeper().await).await;
    let _other = store.instance(&[]);
    let ended = tokio::task::spawn_blocking(move || (one.terminate(), one.log())).await.unwrap();
    assert!(ended.0.success(), "{ended:?}");
    eventually("the other one sweeps", async || {
        store.sweeper().await.filter(|lock| lock.token != held.token)
    })
    .await;
}
