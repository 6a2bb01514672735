//! Topics: what is set for them, handlers one after another, and replays.

use reqwest::Method;
use serde_json::{Value, json};

use super::{publish, subscribe, subscribe_queue};
use crate::server::{Answer, Server};

/// The next message of a queue, once it is there.
async fn arrived(server: &Server, queue: &str) -> Value {
    server.lease(queue, json!({"wait_ms": 20_000})).await.remove(0)
}

#[tokio::test]
async fn a_topic_is_set_shown_changed_and_forgotten() {
    let server = Server::start();
    let set = server.put("/v1/topics/orders.**", json!({"dispatch": "sequential", "retain_ms": 1000})).await;
    assert_eq!((set.status, &set.body["dispatch"]), (200, &json!("sequential")), "{set:?}");
    assert!(set.body["sequence_queue"].as_str().unwrap().starts_with("bus.seq."), "{set:?}");
    let tag = set.headers["etag"].to_str().unwrap().to_owned();
    server.put("/v1/topics/*", json!({})).await;
    let put =
        || server.request(Method::PUT, "/v1/topics/orders.**").header("if-match", &tag).json(&json!({}));
    let changed = Answer::of(put().send().await.unwrap()).await;
    assert_eq!((changed.status, &changed.body["dispatch"]), (200, &json!("independent")), "{changed:?}");
    assert!(changed.body.get("retain_ms").is_none() && changed.body.get("sequence_queue").is_none());
    Answer::of(put().send().await.unwrap()).await.refused(412, "VERSION_MISMATCH");
    let patterns = |page: &Value| -> Vec<String> {
        page["topics"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["pattern"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = server.get("/v1/topics?limit=1").await.body;
    assert_eq!((patterns(&first), &first["next_cursor"]), (vec!["*".to_owned()], &json!("*")));
    let last = server.get("/v1/topics?limit=1&cursor=*").await.body;
    assert_eq!((patterns(&last), last.get("next_cursor")), (vec!["orders.**".to_owned()], None));
    assert_eq!(server.get("/v1/topics/*").await.body["pattern"], "*");
    for (body, field) in [
        (json!({"dispatch": "random"}), "dispatch"),
        (json!({"retain_ms": 0}), "retain"),
        (json!({"retain": 5}), "/retain"),
    ] {
        let answer = server.put("/v1/topics/x", body).await;
        answer.refused(400, "INVALID_ARGUMENT");
        assert_eq!(answer.body["errors"][0]["pointer"], field, "{answer:?}");
    }
    server.put("/v1/topics/ord*", json!({})).await.refused(400, "INVALID_ARGUMENT");
    assert_eq!(server.delete("/v1/topics/orders.**").await.status, 204);
    server.get("/v1/topics/orders.**").await.refused(404, "TOPIC_NOT_FOUND");
    server.delete("/v1/topics/orders.**").await.refused(404, "TOPIC_NOT_FOUND");
}

#[tokio::test]
async fn handlers_of_a_sequential_topic_get_an_event_one_after_another() {
    let server = Server::start();
    server.put("/v1/topics/orders.*", json!({"dispatch": "sequential"})).await;
    subscribe_queue(&server, "first", "orders.*", "box1").await;
    subscribe_queue(&server, "second", "orders.*", "box2").await;
    let results = publish(&server, "orders.made", json!([{"body": "x"}])).await;
    assert_eq!(results[0]["subscriptions"], 2);
    for queue in ["box1", "box2"] {
        let message = arrived(&server, queue).await;
        assert_eq!((&message["id"], &message["body"]), (&results[0]["id"], &json!("x")));
    }
    // Events that wait for somebody keep the topic from going.
    subscribe(&server, json!({"id": "nobody", "pattern": "orders.*", "target": {"kind": "handler"}})).await;
    publish(&server, "orders.made", json!([{"body": "y"}])).await;
    server.delete("/v1/topics/orders.*").await.refused(409, "TOPIC_NOT_EMPTY");
    assert_eq!(server.delete("/v1/topics/orders.*?force=true").await.status, 204);
}

#[tokio::test]
async fn what_a_topic_retained_is_replayed() {
    let server = Server::start();
    server.put("/v1/topics/orders.*", json!({"retain_ms": 3_600_000})).await;
    let past = publish(&server, "orders.made", json!([{"body": "1"}, {"body": "2"}])).await;
    server.create("box", json!({})).await;
    let target = json!({"kind": "queue", "queue": "box"});
    let from = "2020-01-01T00:00:00.000Z";
    let request = json!({"id": "late", "pattern": "orders.*", "target": target, "replay_from": from});
    subscribe(&server, request).await;
    for event in &past {
        assert_eq!(arrived(&server, "box").await["id"], event["id"]);
    }
    let begun = server.post("/v1/subscriptions/late/replays", json!({"from": from})).await;
    assert_eq!(begun.status, 202, "{begun:?}");
    let replays = server.get("/v1/subscriptions/late/replays").await;
    assert!(replays.body["replays"].is_array(), "{replays:?}");
    let none = "/v1/subscriptions/late/replays/01987654-3210-7abc-8def-0123456789ab";
    server.delete(none).await.refused(404, "REPLAY_NOT_FOUND");
    server.post("/v1/subscriptions/late/replays", json!({})).await.refused(400, "INVALID_ARGUMENT");
    server
        .post("/v1/subscriptions/no/replays", json!({"from": from}))
        .await
        .refused(404, "SUBSCRIPTION_NOT_FOUND");
}
