//! Subscriptions: their life, what they refuse, their breakers and what outlives the server.

use reqwest::Method;
use serde_json::{Value, json};

use super::{ALLOW, publish, subscribe, subscribe_queue, with_webhooks};
use crate::leases::next_event;
use crate::server::{Answer, Server};

const HOOK: &str = "http://127.0.0.1:9/hook";
const SECRET: &str = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

#[tokio::test]
async fn a_subscription_is_created_shown_changed_and_deleted() {
    let server = with_webhooks();
    let created = server
        .post(
            "/v1/subscriptions",
            json!({"id": "mail", "pattern": "orders.*", "filter": {"region": ["eu", "us"]},
                "target": {"kind": "webhook", "url": HOOK}, "retry": {"max_attempts": 3}, "timeout_ms": 5000}),
        )
        .await;
    assert_eq!(created.status, 201, "{created:?}");
    let tag = created.headers["etag"].to_str().unwrap().to_owned();
    assert!(created.body["secret"].as_str().unwrap().starts_with("whsec_"), "{created:?}");
    let view = &created.body["subscription"];
    assert_eq!((&view["queue"], &view["state"]), (&json!("bus.sub.mail"), &json!("active")));
    assert_eq!(view["filter"], json!({"region": ["eu", "us"]}));
    assert_eq!((&view["retry"], &view["timeout_ms"]), (&json!({"max_attempts": 3}), &json!(5000)));
    let settings = &view["settings"];
    assert_eq!((&settings["retry"]["max_attempts"], &settings["max_in_flight"]), (&json!(3), &json!(16)));
    assert_eq!((&settings["retry"]["base_delay_ms"], &settings["timeout_ms"]), (&json!(5000), &json!(5000)));
    assert_eq!(
        view["target"],
        json!({"kind": "webhook", "url": HOOK, "format": "structured", "disable_after_ms": 432_000_000, "secrets": 1})
    );
    let shown = server.get("/v1/subscriptions/mail").await;
    assert_eq!((shown.headers["etag"].to_str().unwrap(), shown.body.get("secret")), (&*tag, None));
    assert_eq!(shown.body["breaker_status"]["state"], "closed");

    let change = json!({"pattern": "orders.**", "target": {"url": HOOK, "format": "binary", "disable_after_ms": null},
        "breaker": null});
    let put = |tag: &str| {
        server.request(Method::PUT, "/v1/subscriptions/mail").header("if-match", tag).json(&change)
    };
    let changed = Answer::of(put(&tag).send().await.unwrap()).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!((&changed.body["pattern"], &changed.body["breaker"]), (&json!("orders.**"), &json!(null)));
    assert!(changed.body["settings"].get("breaker").is_none() && changed.body.get("timeout_ms").is_none());
    assert_eq!(changed.body["target"]["secrets"], 1, "they stay");
    assert_eq!(changed.body["target"].get("disable_after_ms"), None);
    Answer::of(put(&tag).send().await.unwrap()).await.refused(412, "VERSION_MISMATCH");
    server
        .post("/v1/subscriptions", json!({"id": "mail", "pattern": "x", "target": {"kind": "handler"}}))
        .await
        .refused(409, "SUBSCRIPTION_EXISTS");
    assert_eq!(server.delete("/v1/subscriptions/mail").await.status, 204);
    for path in ["", "/breaker", "/attempts", "/dead", "/dead/groups", "/replays"] {
        let gone = server.get(&format!("/v1/subscriptions/mail{path}")).await;
        gone.refused(404, "SUBSCRIPTION_NOT_FOUND");
    }
    server.get("/v1/queues/bus.sub.mail").await.refused(404, "QUEUE_NOT_FOUND");
}

#[tokio::test]
async fn subscriptions_are_listed_page_by_page_and_switched() {
    let server = Server::start();
    for id in ["c", "a", "b"] {
        subscribe(&server, json!({"id": id, "pattern": "x", "target": {"kind": "handler"}})).await;
    }
    let ids = |page: &Value| -> Vec<String> {
        let all = page["subscriptions"].as_array().unwrap().iter();
        all.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    let first = server.get("/v1/subscriptions?limit=2").await.body;
    assert_eq!(ids(&first), ["a", "b"]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let last = server.get(&format!("/v1/subscriptions?limit=2&cursor={cursor}")).await.body;
    assert_eq!((ids(&last), last.get("next_cursor")), (vec!["c".to_owned()], None));
    let made = subscribe(&server, json!({"pattern": "x", "target": {"kind": "handler"}})).await;
    assert!(made["subscription"]["id"].as_str().unwrap().starts_with("s-") && made.get("secret").is_none());

    let mut events = server.client.get(server.url("/v1/events")).send().await.unwrap();
    for (verb, state, act) in [
        ("pause", "paused", "paused"),
        ("resume", "active", "resumed"),
        ("disable", "disabled", "disabled"),
        ("enable", "active", "enabled"),
    ] {
        let answer = server.post(&format!("/v1/subscriptions/a/{verb}"), json!({})).await;
        assert_eq!((answer.status, &answer.body["state"]), (200, &json!(state)), "{answer:?}");
        let event = next_event(&mut events, "subscription").await;
        assert_eq!((&event["payload"]["act"], &event["payload"]["subscription"]), (&json!(act), &json!("a")));
        if verb == "disable" {
            assert_eq!(answer.body["disabled"]["why"], "operator");
        }
    }
    // What is paused is told as such to whoever asks why.
    server.post("/v1/subscriptions/a/pause", json!({})).await;
    assert_eq!(server.get("/v1/queues/bus.sub.a").await.body["paused"], true);
    let results = publish(&server, "x", json!([{"body": "1"}])).await;
    assert_eq!(results[0]["subscriptions"], 4);
    assert_eq!(server.count("bus.sub.a", "ready").await, 1, "it comes, and waits");
    server.post("/v1/subscriptions/a/disable", json!({})).await;
    assert_eq!(publish(&server, "x", json!([{"body": "1"}])).await[0]["subscriptions"], 3);
}

#[tokio::test]
async fn what_is_no_subscription_is_refused_by_name() {
    let server = with_webhooks();
    server.create("box", json!({})).await;
    let hook = |url: &str| json!({"pattern": "x", "target": {"kind": "webhook", "url": url}});
    let handler = |more: Value| {
        let mut request = json!({"pattern": "x", "target": {"kind": "handler"}});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        request
    };
    let own = server.url("/v1/queues").replace("http://", "");
    let many: Value =
        (0..17).map(|n| (format!("h{n}"), json!(["x"]))).collect::<serde_json::Map<_, _>>().into();
    let cases = [
        (json!({"pattern": "x"}), "target.kind", "handler, webhook or queue"),
        (json!({"target": {"kind": "handler"}}), "pattern", "empty"),
        (handler(json!({"pattern": "a..b"})), "pattern", "empty segment"),
        (handler(json!({"pattern": "ord*"})), "pattern", "whole segments"),
        (handler(json!({"pattern": "x".repeat(256)})), "pattern", "255"),
        (handler(json!({"id": "a b"})), "id", "allowed"),
        (handler(json!({"id": "s".repeat(65)})), "id", "64"),
        (handler(json!({"filter": {"h": []}})), "filter", "at least one"),
        (handler(json!({"filter": {"": ["x"]}})), "filter", ""),
        (handler(json!({"filter": many})), "filter", "16"),
        (handler(json!({"filter": {"h": "x"}})), "/filter/h", "sequence"),
        (handler(json!({"timeout_ms": 0})), "timeout", "between"),
        (handler(json!({"max_in_flight": 0})), "max_in_flight", "1000"),
        (handler(json!({"max_in_flight": 1001})), "max_in_flight", "1000"),
        (handler(json!({"retry": {"max_attempts": 0}})), "retry.max_attempts", ""),
        (handler(json!({"retries": 1})), "/retries", "unknown"),
        (json!({"pattern": "x", "target": {"kind": "handler", "url": HOOK}}), "target.url", "none"),
        (json!({"pattern": "x", "target": {"kind": "queue"}}), "target.queue", "needed"),
        (json!({"pattern": "x", "target": {"kind": "queue", "queue": "a b"}}), "target.queue", "allowed"),
        (
            json!({"pattern": "x", "target": {"kind": "queue", "queue": "box"}, "timeout_ms": 5}),
            "timeout",
            "settings of the queue",
        ),
        (hook("ftp://example.com/"), "url", "http"),
        (hook("http://10.0.0.1/"), "url", "not allowed"),
        (hook("http://169.254.169.254/latest"), "url", "not allowed"),
        (hook("http://167772161/"), "url", "not allowed"),
        (hook("https://user:word@example.com/"), "url", ""),
        (hook("https://8.8.8.8:22/"), "url", "port"),
        (hook(&format!("http://{own}")), "url", "this server"),
        (hook(&format!("https://example.com/{}", "x".repeat(2_050))), "url", "2048"),
        (
            json!({"pattern": "x", "target": {"kind": "webhook", "url": HOOK, "secret": "whsec_short"}}),
            "secret",
            "base64",
        ),
        (
            json!({"pattern": "x", "target": {"kind": "webhook", "url": HOOK, "format": "xml"}}),
            "target.format",
            "structured or binary",
        ),
        (
            json!({"pattern": "x", "target": {"kind": "webhook", "url": HOOK, "disable_after_ms": 1}}),
            "target.disable_after",
            "between",
        ),
    ];
    for (request, field, said) in cases {
        let answer = server.post("/v1/subscriptions", request.clone()).await;
        answer.refused(400, "INVALID_ARGUMENT");
        let error = &answer.body["errors"][0];
        assert_eq!(error["pointer"], field, "{request}: {answer:?}");
        assert!(error["detail"].as_str().unwrap().contains(said), "{request}: {answer:?}");
    }
    let missing = json!({"pattern": "x", "target": {"kind": "queue", "queue": "missing"}});
    server.post("/v1/subscriptions", missing).await.refused(404, "QUEUE_NOT_FOUND");
    assert_eq!(server.get("/v1/subscriptions").await.body["subscriptions"], json!([]));
}

#[tokio::test]
async fn what_has_no_meaning_for_a_target_is_refused() {
    let server = Server::with(&["--webhooks", "false"]);
    subscribe_queue(&server, "plain", "x", "box").await;
    for (path, body) in [
        ("pause", json!({})),
        ("secret", json!({"secret": SECRET})),
        ("breaker/trip", json!({})),
        ("breaker/reset", json!({})),
    ] {
        let answer = server.post(&format!("/v1/subscriptions/plain/{path}"), body).await;
        answer.refused(409, "WRONG_TARGET");
    }
    server.get("/v1/subscriptions/plain/breaker").await.refused(409, "WRONG_TARGET");
    let hook = json!({"pattern": "x", "target": {"kind": "webhook", "url": "https://example.com/"}});
    server.post("/v1/subscriptions", hook).await.refused(409, "WRONG_TARGET");
    // The bus has queues of its own, and nobody else makes, changes or deletes them.
    subscribe(&server, json!({"id": "mine", "pattern": "x", "target": {"kind": "handler"}})).await;
    for name in ["bus.sub.mine", "bus.relay", "bus.anything"] {
        server.post("/v1/queues", json!({"name": name})).await.refused(409, "QUEUE_OF_BUS");
    }
    let queue = "/v1/queues/bus.sub.mine";
    server.put(queue, json!({"config": {}})).await.refused(409, "QUEUE_OF_BUS");
    server.delete(&format!("{queue}?force=true")).await.refused(409, "QUEUE_OF_BUS");
    assert_eq!(server.get(queue).await.status, 200, "it may be looked at");
}

#[tokio::test]
async fn a_breaker_is_shown_tripped_and_reset() {
    let server = Server::start();
    server.create("with", json!({"breaker": {}})).await;
    server.create("without", json!({})).await;
    subscribe(&server, json!({"id": "mail", "pattern": "x", "target": {"kind": "handler"}})).await;
    subscribe(&server, json!({"id": "none", "pattern": "x", "target": {"kind": "handler"}, "breaker": null}))
        .await;
    let path = "/v1/subscriptions/mail/breaker";
    assert_eq!(server.get(path).await.body["state"], "closed");
    let mut events = server.client.get(server.url("/v1/events")).send().await.unwrap();
    assert_eq!(server.post(&format!("{path}/trip"), json!({})).await.status, 204);
    let event = next_event(&mut events, "breaker").await;
    assert_eq!(
        (&event["payload"]["to"], &event["payload"]["subscription"]),
        (&json!("open"), &json!("mail"))
    );
    let open = server.get(path).await.body;
    assert!(open["state"] == "open" && open["open_until"].is_string(), "{open}");
    let listed = server.get("/v1/breakers").await.body;
    let all: Vec<(&Value, &Value, &Value)> = listed["breakers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["queue"], &one["subscription"], &one["status"]["state"]))
        .collect();
    let none = Value::Null;
    assert_eq!(
        all,
        [(&json!("bus.sub.mail"), &json!("mail"), &json!("open")), (&json!("with"), &none, &json!("closed")),]
    );
    let first = server.get("/v1/breakers?limit=1").await.body;
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = server.get(&format!("/v1/breakers?limit=1&cursor={cursor}")).await.body;
    assert_eq!(second["breakers"][0]["queue"], "with");
    assert_eq!(server.post(&format!("{path}/reset"), json!({})).await.status, 204);
    assert_eq!(server.get("/v1/subscriptions/mail").await.body["breaker_status"]["state"], "closed");
    server.get("/v1/subscriptions/none/breaker").await.refused(409, "NO_BREAKER");
}

#[tokio::test]
async fn all_of_it_outlives_the_server() {
    let flags = ["--test-clock", ALLOW[0], ALLOW[1]];
    let mut server = Server::with(&flags);
    subscribe_queue(&server, "plain", "orders.*", "box").await;
    let target = json!({"kind": "webhook", "url": HOOK, "secret": SECRET});
    subscribe(&server, json!({"id": "hook", "pattern": "other", "filter": {"h": ["v"]}, "target": target}))
        .await;
    subscribe(&server, json!({"id": "off", "pattern": "orders.*", "target": {"kind": "handler"}})).await;
    server.post("/v1/subscriptions/off/disable", json!({})).await;
    server.put("/v1/topics/orders.*", json!({"retain_ms": 60_000})).await;
    publish(&server, "orders.made", json!([{"body": "kept"}])).await;
    let before = (server.get("/v1/subscriptions").await.body, server.get("/v1/topics").await.body);
    server.kill_and_restart(&flags);
    let after = (server.get("/v1/subscriptions").await.body, server.get("/v1/topics").await.body);
    assert_eq!(before, after);
    assert_eq!(server.lease("box", json!({})).await[0]["body"], "kept");
    assert_eq!(publish(&server, "orders.made", json!([{}])).await[0]["subscriptions"], 1);
}

/// The path of a webhook may be a secret of its receiver: only who may read what goes there sees it.
#[tokio::test]
async fn the_path_of_a_webhook_is_shown_to_who_may_read() {
    let server = Server::keyed(&[]);
    let target = json!({"kind": "webhook", "url": "https://example.com/hooks/T0KEN?key=1"});
    subscribe(&server, json!({"id": "hook", "pattern": "a", "target": target})).await;
    let (_, consumer) = server.key(&[("consume", "bus.sub.*")], json!({})).await;
    let (_, reader) = server.key(&[("read", "bus.sub.*")], json!({})).await;
    let shown = async |token: &str, path: &str| {
        let request = server.request_as(Some(token), reqwest::Method::GET, path);
        Answer::of(request.send().await.unwrap()).await.body
    };
    for (token, url) in
        [(&consumer, "https://example.com/…"), (&reader, "https://example.com/hooks/T0KEN?key=1")]
    {
        assert_eq!(shown(token, "/v1/subscriptions/hook").await["target"]["url"], url);
        assert_eq!(shown(token, "/v1/subscriptions").await["subscriptions"][0]["target"]["url"], url);
    }
}
