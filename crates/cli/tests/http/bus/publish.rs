//! Publishing: four formats, and what is refused.

use reqwest::Method;
use serde_json::{Value, json};

use super::{publish, subscribe, subscribe_queue};
use crate::server::{Answer, Server};

async fn send(server: &Server, topic: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut request = server.request(Method::POST, &format!("/v1/topics/{topic}/events"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Answer::of(request.body(body.to_owned()).send().await.unwrap()).await
}

const CLOUD: &str =
    r#"{"specversion":"1.0","id":"1","source":"/shop","type":"made","region":"eu","data":{"n":1}}"#;

#[tokio::test]
async fn events_are_taken_in_each_of_the_four_formats() {
    let server = Server::start();
    subscribe_queue(&server, "all", "orders.**", "box").await;
    let own = json!([
        {"json": {"n": 0}, "headers": {"tier": "gold"}, "type": "own", "fairness_key": "t1"},
        {"body": "text"},
    ]);
    let results = publish(&server, "orders.made", own).await;
    assert!(results.iter().all(|result| result["subscriptions"] == 1 && result["duplicate"] == false));
    for (headers, body) in [
        (vec![("content-type", "application/cloudevents+json")], CLOUD.to_owned()),
        (
            vec![("content-type", "application/cloudevents-batch+json; charset=utf-8")],
            format!("[{}]", CLOUD.replace("\"1\"", "\"2\"")),
        ),
        (
            vec![
                ("content-type", "application/json"),
                ("ce-specversion", "1.0"),
                ("ce-id", "3"),
                ("ce-source", "/shop"),
                ("ce-type", "made"),
                ("ce-region", "eu"),
            ],
            r#"{"n":1}"#.to_owned(),
        ),
    ] {
        let answer = send(&server, "orders.made", &headers, &body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.body["results"][0]["subscriptions"], 1, "{answer:?}");
    }
    let leased = server.lease("box", json!({"limit": 10})).await;
    assert_eq!(leased.len(), 5, "{leased:?}");
    let of = |kind: &str| leased.iter().filter(|one| one["type"] == kind).collect::<Vec<&Value>>();
    let [own] = of("own")[..] else { panic!("{leased:?}") };
    assert_eq!((&own["body"], &own["fairness_key"]), (&json!("{\"n\": 0}".replace(' ', "")), &json!("t1")));
    assert_eq!(own["headers"], json!({"tier": "gold", "redrive-topic": "orders.made"}));
    assert_eq!(of("orders.made").len(), 1, "the type is the topic where nothing is said");
    for one in of("made") {
        assert_eq!((&one["body"], &one["content_type"]), (&json!("{\"n\":1}"), &json!("application/json")));
        assert_eq!((&one["headers"]["ce-region"], &one["source"]), (&json!("eu"), &json!("/shop")));
    }
    assert_eq!(of("made").len(), 3);
}

#[tokio::test]
async fn an_event_is_published_once_under_one_key() {
    let server = Server::start();
    subscribe_queue(&server, "all", "*", "box").await;
    let body = r#"{"events":[{"body":"x"}]}"#;
    let headers = [("content-type", "application/json"), ("idempotency-key", "k1")];
    let first = send(&server, "a.b", &headers, body).await.body["results"][0].clone();
    let again = send(&server, "a.b", &headers, body).await.body["results"][0].clone();
    assert_eq!((&again["id"], &again["duplicate"]), (&first["id"], &json!(true)));
    for (wrong, why) in [
        (r#"{"events":[{"body":"x"},{"body":"y"}]}"#, "there are others beside it"),
        (r#"{"events":[{"body":"x","dedup_key":"d"}]}"#, "dedup_key"),
    ] {
        let refused = send(&server, "a.b", &headers, wrong).await;
        refused.refused(400, "INVALID_ARGUMENT");
        assert!(refused.text.contains(why) && refused.text.contains("Idempotency-Key"), "{refused:?}");
    }
    // Source and id name a CloudEvent.
    let cloud = [("content-type", "application/cloudevents+json")];
    let first = send(&server, "a.b", &cloud, CLOUD).await.body["results"][0].clone();
    let again = send(&server, "a.b", &cloud, CLOUD).await.body["results"][0].clone();
    assert_eq!((&again["id"], &again["duplicate"]), (&first["id"], &json!(true)));
    assert_eq!(server.count("box", "ready").await, 2);
}

#[tokio::test]
async fn a_full_queue_stands_in_nobodys_way_and_gets_its_events_later() {
    let server = Server::start();
    server.create("box", json!({"max_waiting": 1})).await;
    let target = json!({"kind": "queue", "queue": "box"});
    subscribe(&server, json!({"id": "box", "pattern": "a", "target": target})).await;
    let results = publish(&server, "a", json!([{"body": "1"}, {"body": "2"}])).await;
    assert!(results.iter().all(|result| result["subscriptions"] == 1), "{results:?}");
    assert_eq!(server.count("box", "ready").await, 1);
    for event in &results {
        let leased = server.lease("box", json!({"wait_ms": 20_000})).await.remove(0);
        assert_eq!(leased["body"], if event == &results[0] { "1" } else { "2" });
        server.post("/v1/leases/ack", json!({"receipt": leased["receipt"]})).await;
    }
    let nobody = publish(&server, "nobody", json!([{"body": "x"}])).await;
    assert_eq!((&nobody[0]["subscriptions"], nobody[0]["id"].is_string()), (&json!(0), true));
}

/// Headers, a body, where it is wrong, and what is said about it.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str, &'a str);

#[tokio::test]
async fn what_is_no_event_is_refused_by_name() {
    let server = Server::start();
    let json = [("content-type", "application/json")];
    let cloud = [("content-type", "application/cloudevents+json")];
    let batch = [("content-type", "application/cloudevents-batch+json")];
    let binary = [("content-type", "text/plain"), ("ce-specversion", "0.3")];
    let deep = format!(r#"{{"events":[{{"json":{}{}}}]}}"#, "[".repeat(65), "]".repeat(65));
    let large = format!(r#"{{"events":[{{"body":"{}"}}]}}"#, "x".repeat(1024 * 1024 + 1));
    let many = format!(r#"{{"events":[{}]}}"#, vec!["{}"; 1_001].join(","));
    let cases: [Case<'_>; 14] = [
        (&json, r#"{"events":[{"bodi":"x"}]}"#, "/events/0/bodi", "unknown"),
        (&json, r#"{"events":{}}"#, "/events", "list"),
        (&json, r#"{"events":[{"body":"a","json":1}]}"#, "/events/0/body", "only one"),
        (&json, r#"{"events":[{"body_base64":"?"}]}"#, "/events/0/body_base64", "base64"),
        (&json, r#"{"events":[{"headers":{"redrive-topic":"x"}}]}"#, "headers", "redrive-"),
        (&json, &deep, "/events/0/json", "the limit is 64"),
        (&json, &large, "/events/0/body", "1048576"),
        (&json, &many, "/events", "1000"),
        (&cloud, r#"{"specversion":"1.0","id":"1","source":"/s"}"#, "type", "empty"),
        (&cloud, r#"{"specversion":"2.0","id":"1","source":"/s","type":"t"}"#, "specversion", "1.0"),
        (&cloud, "[]", "event", "JSON object"),
        (&batch, "{}", "events", "array"),
        (&batch, r#"[{"specversion":"1.0"}]"#, "type", "empty"),
        (&binary, "data", "specversion", "1.0"),
    ];
    for (headers, body, pointer, said) in cases {
        let answer = send(&server, "a.b", headers, body).await;
        answer.refused(400, "INVALID_ARGUMENT");
        let error = &answer.body["errors"][0];
        let detail = error["detail"].as_str().unwrap();
        assert_eq!(error["pointer"], pointer, "{answer:?}");
        assert!(detail.contains(said), "{said}: {answer:?}");
    }
    send(&server, "a.b", &[("content-type", "text/plain")], "x").await.refused(415, "UNSUPPORTED_MEDIA_TYPE");
    for (topic, said) in [
        ("a..b", "empty segment"),
        (".a", "empty segment"),
        ("a.*", "allowed"),
        ("a%20b", "allowed"),
        ("%C3%A4", "allowed"),
        (&"a.".repeat(40).replace("..", ".") as &str, "segment"),
        (&"x".repeat(256), "255"),
    ] {
        let answer = send(&server, topic, &json, r#"{"events":[]}"#).await;
        answer.refused(400, "INVALID_ARGUMENT");
        assert_eq!(answer.body["errors"][0]["pointer"], "topic", "{answer:?}");
        assert!(answer.text.contains(said), "{said}: {answer:?}");
    }
}
