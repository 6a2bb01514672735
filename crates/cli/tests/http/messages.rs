//! Messages in, and looking at them.

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Answer, Server};

#[tokio::test]
async fn a_message_comes_back_as_it_went_in() {
    let server = Server::start();
    let raw = "{ \"n\": 12345678901234567890.10, \"z\":1 ,\"a\":2}";
    let body = format!(
        "{{\"json\":{raw},\"type\":\"paid\",\"source\":\"shop\",\"priority\":7,\"fairness_key\":\"t\",\"headers\":{{\"a\":\"1\"}}}}"
    );
    let request =
        server.request(Method::POST, "/v1/queues/orders/messages").header("content-type", "application/json");
    let answer = Answer::of(request.body(body).send().await.unwrap()).await;
    assert_eq!((answer.status, &answer.body["duplicate"]), (201, &json!(false)));
    let id = answer.body["id"].as_str().unwrap();
    let message = server.get(&format!("/v1/queues/orders/messages/{id}")).await.body;
    assert_eq!(message["body"], raw, "byte for byte, whatever a number is");
    assert_eq!(message["content_type"], "application/json");
    for (field, value) in [("type", "paid"), ("source", "shop"), ("fairness_key", "t"), ("state", "ready")] {
        assert_eq!(message[field], value);
    }
    assert_eq!((&message["priority"], &message["headers"]), (&json!(7), &json!({"a": "1"})));

    let id = server.enqueue("orders", json!({"body_base64": "/wD+"})).await;
    let message = server.get(&format!("/v1/queues/orders/messages/{id}")).await.body;
    assert_eq!((&message["body_base64"], &message["body"]), (&json!("/wD+"), &json!(null)));
}

#[tokio::test]
async fn a_repeated_enqueue_is_answered_with_the_first() {
    let server = Server::start();
    let first = server.enqueue("orders", json!({"body": "a", "dedup_key": "k"})).await;
    let again = server.post("/v1/queues/orders/messages", json!({"body": "b", "dedup_key": "k"})).await;
    assert_eq!((again.status, &again.body), (200, &json!({"id": first, "duplicate": true})));
    let own = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
    assert_eq!(server.enqueue("orders", json!({"id": own})).await, own);
    assert_eq!(server.post("/v1/queues/orders/messages", json!({"id": own})).await.body["duplicate"], true);
}

#[tokio::test]
async fn an_idempotency_key_may_be_repeated_with_the_same_message_only() {
    let server = Server::start();
    let put = async |body: Value| {
        let request =
            server.request(Method::POST, "/v1/queues/orders/messages").header("idempotency-key", "order-1");
        Answer::of(request.json(&body).send().await.unwrap()).await
    };
    let first = put(json!({"body": "a"})).await;
    assert_eq!(first.status, 201);
    let again = put(json!({"body": "a"})).await;
    assert_eq!((again.status, &again.body["id"]), (200, &first.body["id"]));
    put(json!({"body": "b"})).await.refused(422, "IDEMPOTENCY_KEY_REUSED");
    put(json!({"body": "a", "dedup_key": "k"})).await.refused(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn a_batch_answers_each_message_or_all_together() {
    let server = Server::start();
    server.create("orders", json!({"max_waiting": 2})).await;
    let messages: Vec<Value> = (0..3).map(|n| json!({"body": n.to_string()})).collect();
    let answer = server.post("/v1/queues/orders/messages/batch", json!({"messages": messages})).await;
    let results = answer.body["results"].as_array().unwrap();
    assert_eq!(
        (results.len(), &results[2]["code"], &results[2]["advice"]),
        (3, &json!("QUEUE_FULL"), &json!("retry"))
    );
    assert!(results[0]["id"].is_string() && results[0]["code"].is_null());
    server.create("all", json!({"max_waiting": 2})).await;
    let whole = json!({"messages": messages, "all_or_nothing": true});
    let answer = server.post("/v1/queues/all/messages/batch", whole).await;
    let codes: Vec<&str> = answer.body["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["ABORTED", "ABORTED", "QUEUE_FULL"]);
    assert_eq!(server.count("all", "ready").await, 0);
}

#[tokio::test]
async fn messages_are_listed_filtered_and_paged() {
    let server = Server::start();
    for n in 0..5 {
        let kind = if n % 2 == 0 { "even" } else { "odd" };
        server
            .enqueue(
                "orders",
                json!({"body": n.to_string(), "type": kind, "delay_ms": if n == 4 { 60_000 } else { 0 }}),
            )
            .await;
    }
    let bodies = |page: &Value| -> Vec<String> {
        page["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["body"].as_str().unwrap().to_owned())
            .collect()
    };
    let even = server.get("/v1/queues/orders/messages?type=even").await.body;
    assert_eq!(bodies(&even), ["0", "2", "4"]);
    let ready = server.get("/v1/queues/orders/messages?type=even&state=ready").await.body;
    assert_eq!(bodies(&ready), ["0", "2"]);
    let newest = server.get("/v1/queues/orders/messages?newest_first=true&limit=2").await.body;
    assert_eq!(bodies(&newest), ["4", "3"]);
    let cursor = newest["next_cursor"].as_str().unwrap();
    let next = server
        .get(&format!("/v1/queues/orders/messages?newest_first=true&limit=2&cursor={cursor}"))
        .await
        .body;
    assert_eq!(bodies(&next), ["2", "1"]);
    for query in [
        "state=lost",
        "limit=0",
        "limit=1001",
        "cursor=x",
        "created_after=yesterday",
        "colour=red",
        "attempts_min=-1",
    ] {
        let answer = server.get(&format!("/v1/queues/orders/messages?{query}")).await;
        answer.refused(400, "INVALID_ARGUMENT");
    }
    for list in ["/v1/queues/orders/messages", "/v1/queues", "/v1/operations"] {
        let answer = server.get(&format!("{list}?cursor=a%20b")).await;
        assert_eq!(answer.body["errors"][0]["pointer"], "cursor", "{list}");
    }
}

#[tokio::test]
async fn an_operator_reschedules_moves_discards_and_asks_why() {
    let server = Server::with_clock();
    server.create("orders", json!({})).await;
    server.create("other", json!({})).await;
    let first = server.enqueue("orders", json!({"body": "1"})).await;
    let second = server.enqueue("orders", json!({"body": "2"})).await;
    let path = |id: &str, verb: &str| format!("/v1/queues/orders/messages/{id}{verb}");
    let why = server.get(&path(&second, "/why")).await.body;
    assert_eq!((&why["obstacles"][0]["kind"], &why["obstacles"][0]["count"]), (&json!("behind"), &json!(1)));
    let delayed = server.post(&path(&first, "/reschedule"), json!({"delay_ms": 5000, "priority": 9})).await;
    assert_eq!(
        (delayed.status, &delayed.body["state"], &delayed.body["priority"]),
        (200, &json!("delayed"), &json!(9))
    );
    let why = server.get(&path(&first, "/why")).await.body;
    assert_eq!(
        (&why["obstacles"][0]["kind"], &why["earliest"]),
        (&json!("not_due"), &delayed.body["visible_at"])
    );
    server.post(&path(&first, "/reschedule"), json!({})).await.refused(400, "INVALID_ARGUMENT");
    assert_eq!(server.post(&path(&second, "/move"), json!({"queue": "other"})).await.status, 204);
    assert_eq!(
        server.get(&format!("/v1/queues/other/messages/{second}")).await.body["origin_queue"],
        "orders"
    );
    server.post(&path(&first, "/move"), json!({"queue": "nowhere"})).await.refused(404, "QUEUE_NOT_FOUND");
    server.advance(5000).await;
    let leased = server.lease("orders", json!({})).await;
    assert_eq!(leased[0]["id"], first.as_str());
    server.delete(&path(&first, "")).await.refused(409, "WRONG_STATE");
    assert_eq!(server.delete(&path(&first, "?force=true")).await.status, 204);
    server.post("/v1/leases/ack", json!({"receipt": leased[0]["receipt"]})).await.refused(404, "NOT_FOUND");
    server.get(&path(&first, "")).await.refused(404, "NOT_FOUND");
}

#[tokio::test]
async fn what_is_exported_can_be_imported() {
    let server = Server::start();
    for n in 0..1_200 {
        if n % 400 == 0 {
            let messages: Vec<Value> = (n..n + 400)
                .map(|n| json!({"body": format!("body {n}"), "type": "paid", "headers": {"n": n.to_string()}, "priority": 3}))
                .collect();
            server.post("/v1/queues/orders/messages/batch", json!({"messages": messages})).await;
        }
    }
    let export = server.get("/v1/queues/orders/messages/export").await;
    assert_eq!((export.status, export.kind.as_str()), (200, "application/x-ndjson"));
    assert_eq!(export.text.lines().count(), 1_200);
    let import = async |text: String| {
        let request = server.request(Method::POST, "/v1/queues/copy/messages/import");
        Answer::of(request.header("content-type", "application/x-ndjson").body(text).send().await.unwrap())
            .await
    };
    let done = import(export.text.clone()).await;
    assert_eq!((&done.body["imported"], &done.body["refused"]), (&json!(1_200), &json!(0)), "{done:?}");
    assert_eq!(import(export.text.clone()).await.body["duplicates"], 1_200);
    let copy = server.get("/v1/queues/copy/messages/export").await;
    assert_eq!(copy.text, export.text);
    let wrong = import("{\"body\":\"x\"}\n{\"bod\":1}\nnot json\n\n{\"priority\":10}".to_owned()).await;
    assert_eq!((&wrong.body["imported"], &wrong.body["refused"]), (&json!(1), &json!(3)));
    let problems = wrong.body["problems"].as_array().unwrap();
    assert!(
        problems[0].as_str().unwrap().starts_with("line 2: ")
            && problems[2].as_str().unwrap().starts_with("line 5: ")
    );
}
