//! Webhooks to a real endpoint: signed, retried, given up, switched off, and their secrets replaced.

use redrive_wire::Time;
use serde_json::{Value, json};

use super::receiver::Receiver;
use super::{publish, subscribe, with_webhooks};
use crate::leases::next_event;
use crate::server::Server;

/// Subscribes an endpoint with few attempts, and answers the secret.
async fn hook(server: &Server, id: &str, url: &str, attempts: u32) -> String {
    let retry = json!({"max_attempts": attempts, "base_delay_ms": 1_000, "jitter": "none"});
    let target = json!({"kind": "webhook", "url": url});
    let request = json!({"id": id, "pattern": "orders.*", "target": target, "retry": retry});
    subscribe(server, request).await["secret"].as_str().unwrap().to_owned()
}

/// The log lines of retries, once there are so many.
async fn retries(server: &Server, count: usize) -> Vec<Value> {
    server.logged("redrive::retry", count).await;
    let log = server.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["target"] == "redrive::retry").collect()
}

/// Waits until so many messages of a queue are in a state.
async fn until(server: &Server, queue: &str, state: &str, count: u64) {
    while server.count(queue, state).await != count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_webhook_is_signed_and_comes_again_after_a_failure() {
    let server = with_webhooks();
    let mut receiver = Receiver::answering(&[500]).await;
    let secret = hook(&server, "mail", &receiver.url, 5).await;
    let event = publish(&server, "orders.made", json!([{"json": {"n": 1}}])).await.remove(0);
    let first = receiver.next().await;
    assert!(first.is_signed_with(&secret));
    assert_eq!(first.header("content-type"), "application/cloudevents+json; charset=utf-8");
    let cloud: Value = serde_json::from_slice(&first.body).unwrap();
    assert_eq!((&cloud["specversion"], &cloud["data"]), (&json!("1.0"), &json!({"n": 1})));
    // Every retry is one line that says all there is to know.
    let told = retries(&server, 1).await.remove(0);
    let fields = &told;
    assert_eq!(fields["level"], "WARN");
    assert_eq!(fields["event_id"], event["id"]);
    assert_eq!((&fields["event_type"], &fields["subscription_id"]), (&json!("orders.made"), &json!("mail")));
    assert_eq!((&fields["attempt"], &fields["max_attempts"]), (&json!(1), &json!(5)));
    assert_eq!(fields["delay_ms"], 1_000);
    assert!(fields["error"].as_str().unwrap().contains("500"), "{told}");
    server.advance(2_000).await;
    let second = receiver.next().await;
    assert_eq!(first.header("webhook-id"), second.header("webhook-id"), "the id stays");
    assert!(second.is_signed_with(&secret));
    until(&server, "bus.sub.mail", "delayed", 0).await;
    until(&server, "bus.sub.mail", "leased", 0).await;
    let attempts = server.get("/v1/subscriptions/mail/attempts").await;
    let all = attempts.body["attempts"].as_array().unwrap();
    let delivered: Vec<&Value> = all.iter().map(|attempt| &attempt["delivered"]).collect();
    assert_eq!(delivered, [&json!(true), &json!(false)], "{attempts:?}");
    assert_eq!(all[1]["response"]["status"], 500);
    assert!(!attempts.text.contains("webhook-signature"), "{attempts:?}");
    let metrics = server.get("/metrics").await.text;
    for line in [
        "redrive_published_total 1",
        "redrive_delivery_attempts_total{subscription=\"mail\",outcome=\"delivered\"} 1",
        "redrive_delivery_attempts_total{subscription=\"mail\",outcome=\"failed\"} 1",
        "redrive_subscriptions{target=\"webhook\",state=\"active\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    assert_eq!(metrics.matches("# EOF").count(), 1);
}

#[tokio::test]
async fn an_endpoint_that_is_gone_is_switched_off_and_everybody_is_told() {
    let server = with_webhooks();
    let mut events = server.client.get(server.url("/v1/events")).send().await.unwrap();
    let mut receiver = Receiver::answering(&[410]).await;
    hook(&server, "mail", &receiver.url, 5).await;
    assert_eq!(next_event(&mut events, "subscription").await["payload"]["act"], "created");
    publish(&server, "orders.made", json!([{"body": "x"}])).await;
    receiver.next().await;
    let event = next_event(&mut events, "subscription").await;
    assert_eq!(
        (&event["payload"]["act"], &event["payload"]["subscription"], &event["payload"]["triggered_by"]),
        (&json!("disabled"), &json!("mail"), &json!("scheduler"))
    );
    let shown = server.get("/v1/subscriptions/mail").await.body;
    assert_eq!((&shown["state"], &shown["disabled"]["why"]), (&json!("disabled"), &json!("gone")));
    assert_eq!(publish(&server, "orders.made", json!([{}])).await[0]["subscriptions"], 0);
}

#[tokio::test]
async fn a_secret_is_replaced_while_the_old_one_signs_as_well() {
    let server = with_webhooks();
    let mut receiver = Receiver::answering(&[]).await;
    let old = hook(&server, "mail", &receiver.url, 5).await;
    let rotated = server.post("/v1/subscriptions/mail/secret", json!({"overlap_ms": 60_000})).await;
    assert_eq!(rotated.status, 200, "{rotated:?}");
    let new = rotated.body["secret"].as_str().unwrap().to_owned();
    assert_eq!(rotated.body["subscription"]["target"]["secrets"], 2);
    assert!(rotated.body["subscription"]["target"]["old_secrets_until"].is_string());
    publish(&server, "orders.made", json!([{"body": "1"}])).await;
    let both = receiver.next().await;
    assert!(both.is_signed_with(&old) && both.is_signed_with(&new));
    // What was delivered must be settled before its lease runs out.
    until(&server, "bus.sub.mail", "leased", 0).await;
    server.advance(61_000).await;
    publish(&server, "orders.made", json!([{"body": "2"}])).await;
    let one = receiver.next().await;
    assert!(!one.is_signed_with(&old) && one.is_signed_with(&new));
    let given = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
    let rotated =
        server.post("/v1/subscriptions/mail/secret", json!({"secret": given, "overlap_ms": 0})).await;
    assert!(rotated.body.get("secret").is_none(), "whoever gave it has it: {rotated:?}");
    publish(&server, "orders.made", json!([{"body": "3"}])).await;
    assert!(receiver.next().await.is_signed_with(given));
    let wrong = server.post("/v1/subscriptions/mail/secret", json!({"overlap_ms": 8 * 86_400_000_u64})).await;
    wrong.refused(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn what_is_dead_for_one_subscription_is_brought_back_to_it_alone() {
    let server = with_webhooks();
    let mut failing = Receiver::answering(&[500, 500]).await;
    let mut working = Receiver::answering(&[]).await;
    hook(&server, "failing", &failing.url, 1).await;
    hook(&server, "working", &working.url, 1).await;
    let events = publish(&server, "orders.made", json!([{"body": "1"}, {"body": "2"}])).await;
    for _ in 0..2 {
        failing.next().await;
        working.next().await;
    }
    until(&server, "bus.sub.failing", "dead", 2).await;
    let first = server.get("/v1/subscriptions/failing/dead?limit=1").await.body;
    let dead = &first["dead"][0];
    assert_eq!((&dead["reason"], &dead["message"]["id"]), (&json!("max_attempts"), &events[0]["id"]));
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = server.get(&format!("/v1/subscriptions/failing/dead?limit=1&cursor={cursor}")).await.body;
    assert_eq!(second["dead"][0]["message"]["id"], events[1]["id"]);
    server.get("/v1/subscriptions/failing/dead?cursor=x").await.refused(400, "INVALID_ARGUMENT");
    assert_eq!(server.get("/v1/subscriptions/working/dead").await.body["dead"], json!([]));
    let groups = server.get("/v1/subscriptions/failing/dead/groups").await.body;
    assert_eq!(groups["groups"][0]["messages"], 2, "{groups}");
    let path = "/v1/subscriptions/failing/dead/redrive";
    let counted = server.post(path, json!({"dry_run": true})).await;
    assert_eq!((counted.status, &counted.body["matched"]), (200, &json!(2)), "{counted:?}");
    let begun = server.post(path, json!({"by": "me", "reason": "it works again", "rate": 100})).await;
    assert_eq!(
        (begun.status, &begun.body["operations"][0]["queue"]),
        (202, &json!("bus.sub.failing")),
        "{begun:?}"
    );
    server.post(path, json!({"rate": 0})).await.refused(400, "INVALID_ARGUMENT");
    // The next second has the rest, where one has not enough for all.
    server.advance(1_000).await;
    for _ in 0..2 {
        failing.next().await;
    }
    until(&server, "bus.sub.failing", "dead", 0).await;
    assert_eq!(server.count("bus.sub.working", "dead").await, 0);
}

#[tokio::test]
async fn an_endpoint_asks_for_its_time() {
    let server = with_webhooks();
    let mut receiver = Receiver::answering(&[503]).await;
    hook(&server, "mail", &receiver.url, 5).await;
    let now = server.post("/test/clock", json!(0)).await.body.as_u64().unwrap();
    publish(&server, "orders.made", json!([{"body": "x"}])).await;
    receiver.next().await;
    retries(&server, 1).await;
    let page = server.get("/v1/queues/bus.sub.mail/messages").await.body;
    let due: Time = serde_json::from_value(page["messages"][0]["visible_at"].clone()).unwrap();
    assert_eq!(due.0 - now, 1_000, "by the policy, where it asks for none");
}

#[tokio::test]
async fn one_event_is_sent_once_more_by_whichever_way_there_is() {
    let server = with_webhooks();
    let topic = server.put("/v1/topics/orders.*", json!({"retain_ms": 86_400_000})).await;
    assert!(topic.status < 300, "{topic:?}");
    let mut receiver = Receiver::answering(&[500, 500, 200, 500, 200, 200]).await;
    hook(&server, "mail", &receiver.url, 2).await;
    let resend = async |event: &Value| {
        let answer = server.post("/v1/subscriptions/mail/resend", json!({"event": event})).await;
        assert_eq!((answer.status, &answer.body["event"]), (202, event), "{answer:?}");
        answer.body["how"].as_str().unwrap().to_owned()
    };
    let over = async || until(&server, "bus.sub.mail", "leased", 0).await;

    let event = publish(&server, "orders.made", json!([{"json": 1}])).await.remove(0)["id"].take();
    receiver.next().await;
    until(&server, "bus.sub.mail", "delayed", 1).await;
    assert_eq!(resend(&event).await, "retried_now");
    receiver.next().await;
    until(&server, "bus.sub.mail", "dead", 1).await;
    assert_eq!(resend(&event).await, "redriven");
    assert_eq!(receiver.next().await.header("webhook-id"), event.as_str().unwrap());
    over().await;
    assert_eq!(server.count("bus.sub.mail", "dead").await, 0);
    assert_eq!(resend(&event).await, "enqueued");
    receiver.next().await;
    until(&server, "bus.sub.mail", "delayed", 1).await;
    assert_eq!(resend(&event).await, "retried_now", "as any other");
    receiver.next().await;
    over().await;

    let none = json!({"event": "01987654-3210-7abc-8def-0123456789ab"});
    let refused = server.post("/v1/subscriptions/mail/resend", none).await;
    refused.refused(404, "EVENT_NOT_FOUND");
    assert!(refused.body["detail"].as_str().unwrap().contains("mail"), "{refused:?}");
    let wrong = server.post("/v1/subscriptions/mail/resend", json!({"event": "x"})).await;
    wrong.refused(400, "INVALID_ARGUMENT");
    assert_eq!(wrong.body["errors"][0]["pointer"], "event", "{wrong:?}");
    server
        .post("/v1/subscriptions/none/resend", json!({"event": event}))
        .await
        .refused(404, "SUBSCRIPTION_NOT_FOUND");
}

#[tokio::test]
async fn to_send_again_into_a_queue_takes_the_right_over_that_queue() {
    let server = Server::keyed(&[]);
    super::subscribe_queue(&server, "copy", "orders.*", "others").await;
    let event = publish(&server, "orders.made", json!([{"json": 1}])).await.remove(0)["id"].take();
    let ask = async |queues: &[(&str, &str)]| {
        let (_, token) = server.key(queues, json!({})).await;
        let request = server.request_as(Some(&token), reqwest::Method::POST, "/v1/subscriptions/copy/resend");
        crate::server::Answer::of(request.json(&json!({"event": event})).send().await.unwrap()).await
    };
    ask(&[("manage", "bus.sub.copy")]).await.refused(403, "FORBIDDEN");
    ask(&[("manage", "others")]).await.refused(403, "FORBIDDEN");
    let done = ask(&[("manage", "bus.sub.copy"), ("manage", "others")]).await;
    assert_eq!((done.status, &done.body["how"]), (202, &json!("retried_now")), "{done:?}");
}
