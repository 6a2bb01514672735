//! `redrive publish`.

use serde_json::{Value, json};

use crate::run::{command, fed, masked, redrive, run};
use crate::server::Server;

/// A server with a queue that gets everything.
fn subscribed() -> Server {
    let server = Server::start();
    redrive(&server, "queue create all").ok();
    redrive(&server, "subscription create all --pattern ** --queue all").ok();
    server
}

#[tokio::test]
async fn an_event_is_with_those_who_want_it() {
    let server = subscribed();
    redrive(&server, "queue create gold").ok();
    redrive(&server, "subscription create gold --pattern orders.* --filter tier=gold,silver --queue gold")
        .ok();
    let line = "publish orders.created hello --type order.created --header tier=gold --key acme --content-type text/x-note";
    let published = redrive(&server, line);
    assert_eq!((&*masked(&published.out), &*published.err), ("00000000-0000-0000-0000-000000000000\n", ""));
    let id = published.out.trim();
    for queue in ["all", "gold"] {
        let message = server.lease(queue, json!({})).await.remove(0);
        assert_eq!((&message["id"], &message["body"]), (&json!(id), &json!("hello")), "{queue}");
        assert_eq!((&message["type"], &message["fairness_key"]), (&json!("order.created"), &json!("acme")));
        assert_eq!(message["content_type"], "text/x-note");
        assert_eq!(
            (&message["headers"]["tier"], &message["headers"]["redrive-topic"]),
            (&json!("gold"), &json!("orders.created"))
        );
    }
    let other = redrive(&server, "publish orders.created hello --json").json();
    assert_eq!((&other["subscriptions"], &other["duplicate"]), (&json!(1), &json!(false)), "{other}");
    assert!(server.lease("gold", json!({})).await.is_empty());
    assert_eq!(redrive(&server, "publish orders.created hello -o id -q").ok().lines().count(), 1);
}

#[tokio::test]
async fn who_publishes_is_told_what_is_odd() {
    let server = Server::start();
    let nobody = redrive(&server, "publish orders.created hello");
    assert_eq!(nobody.err, "redrive: no subscription wants it\n");
    assert!(redrive(&server, "publish orders.created hello -q").err.is_empty());
    let server = subscribed();
    let first = redrive(&server, "publish orders.created hello --dedup-key k").ok();
    let second = redrive(&server, "publish orders.created hello --dedup-key k");
    assert_eq!(
        (&second.out, &*second.err),
        (&first, "redrive: it was published already: this is the first one's id\n")
    );
    assert_eq!(server.count("all", "ready").await, 1);
}

#[tokio::test]
async fn a_body_comes_from_wherever_it_is() {
    let server = subscribed();
    let body = async || server.lease("all", json!({})).await.remove(0);
    std::fs::write(server.dir.path().join("body"), b"\xff\x00").unwrap();
    redrive(&server, "publish a --file body").ok();
    assert_eq!(body().await["body_base64"], "/wA=");
    redrive(&server, "publish a --json-body {\"n\":1.10}").ok();
    assert_eq!(body().await["body"], "{\"n\":1.10}");
    fed(&server, "publish a --file -", b"piped").ok();
    assert_eq!(body().await["body"], "piped");
    let event =
        br#"{"specversion":"1.0","id":"A-1","source":"/shop","type":"order.paid","data":{"order":7}}"#;
    std::fs::write(server.dir.path().join("event"), event).unwrap();
    let first = redrive(&server, "publish orders.paid --cloudevent event").ok();
    let message = body().await;
    assert_eq!((&message["body"], &message["type"]), (&json!("{\"order\":7}"), &json!("order.paid")));
    let again = redrive(&server, "publish orders.paid --cloudevent event");
    assert_eq!(again.out, first, "source and id name an event");
    let batch = br#" [{"specversion":"1.0","id":"1","source":"/shop","type":"a"},{"specversion":"1.0","id":"2","source":"/shop","type":"b"}]"#;
    let ran = fed(&server, "publish orders.paid --cloudevent - -o ndjson", batch);
    let seen: Vec<Value> = ran.ok().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(seen.len() == 2 && seen.iter().all(|one| one["subscriptions"] == 1), "{seen:?}");
}

#[tokio::test]
async fn lines_come_in_and_wrong_ones_are_named() {
    let server = subscribed();
    let lines = "{\"body\":\"a\",\"dedup_key\":\"k\"}\n{\"bdy\":\"b\"}\n{\"body\":\"c\",\"dedup_key\":\"k\"}\n\
                 {\"body\":\"d\",\"type\":\"\\u0001\"}\n{\"json\":{\"n\":1.10}}\n";
    let ran = fed(&server, "publish orders.created --ndjson", lines.as_bytes());
    assert_eq!(ran.code, 7, "{ran:?}");
    assert!(ran.err.contains("redrive: line 2: unknown field `bdy`"), "{ran:?}");
    assert!(ran.err.contains("redrive: line 4: type: byte 0 is not allowed"), "{ran:?}");
    assert_eq!(ran.out, "2 published, 1 duplicates, 2 refused\n");
    let many = "{\"body\":\"x\"}\n".repeat(1_500);
    let done = fed(&server, "publish orders.created --ndjson -", many.as_bytes());
    assert_eq!(done.ok(), "1500 published, 0 duplicates, 0 refused\n");
    let none = fed(&server, "publish orders.created --ndjson --json", b"").json();
    assert_eq!(none, json!({"published": 0, "duplicates": 0, "refused": 0}));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let server = Server::start();
    for (line, said) in [
        ("publish orders.* hello", "is not allowed"),
        ("publish orders hello --file f", "cannot be used with"),
        ("publish orders --ndjson f --type t", "cannot be used with"),
        ("publish orders --cloudevent f --header a=b", "cannot be used with"),
        ("publish orders", "say what: BODY, --file FILE"),
        ("publish orders hello --header b", "must be NAME=VALUE"),
        ("publish orders hello --header redrive-x=1", "are the server's own"),
        ("publish orders --json-body {", "is no JSON"),
    ] {
        redrive(&server, line).failed(2, said);
    }
    redrive(&server, "publish orders --file nowhere").failed(1, "reading nowhere: ");
    fed(&server, "publish orders --cloudevent -", b"{}").failed(2, "specversion");
    let problem = fed(&server, "publish orders --cloudevent - --json", b"nonsense");
    let problem: Value = serde_json::from_str(&problem.err).unwrap();
    assert_eq!(problem["code"], "INVALID_ARGUMENT");
}

#[tokio::test]
async fn to_publish_is_to_produce() {
    let server = Server::keyed(&[]);
    let (_, token) = server.key(&[("produce", "orders.*")], json!({})).await;
    let publish =
        |topic: &str| run(command(&server, &["publish", topic, "hello"]).env("REDRIVE_TOKEN", &token));
    publish("orders.created").ok();
    publish("payments.created").failed(5, "redrive: ");
}
