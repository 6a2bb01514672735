//! What a client must not be able to do: everything is refused by name, and the server goes on.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use reqwest::Method;
use serde_json::json;

use crate::server::{Answer, Server};

#[tokio::test]
async fn wrong_bodies_are_refused_where_they_are_wrong() {
    let server = Server::start();
    let path = "/v1/queues/orders/messages";
    let send = async |body: &'static [u8]| {
        let request =
            server.request(Method::POST, path).header("content-type", "application/json").body(body);
        Answer::of(request.send().await.unwrap()).await
    };
    for (body, pointer) in [
        (&b"{"[..], ""),
        (b"[]", ""),
        (b"", ""),
        (b"nonsense", ""),
        (b"{\"body\":\"\xff\"}", "/body"),
        (b"{\"body\":1}", "/body"),
        (b"{\"body\":\"x\"} trailing", ""),
        (b"{\"bodi\":\"x\"}", "/bodi"),
        (b"{\"priority\":10}", "priority"),
        (b"{\"priority\":-1}", "/priority"),
        (b"{\"headers\":{\"a\":1}}", "/headers/a"),
        (b"{\"headers\":{\"a b\":\"1\"}}", "headers"),
        (b"{\"delay_ms\":1e30}", "/delay_ms"),
        (b"{\"delay_ms\":99999999999999}", "delay"),
        (b"{\"delay_ms\":1,\"visible_at\":\"2030-01-01T00:00:00Z\"}", "delay_ms"),
        (b"{\"visible_at\":\"soon\"}", "/visible_at"),
        (b"{\"body\":\"x\",\"json\":1}", "body"),
        (b"{\"body_base64\":\"*\"}", "body_base64"),
        (b"{\"id\":\"1\"}", "id"),
        (b"{\"max_attempts\":0}", "max_attempts"),
        (b"{\"lease_timeout_ms\":0}", "lease_timeout"),
        (b"{\"unique\":\"always\",\"dedup_key\":\"k\"}", "unique"),
        (b"{\"type\":\"a\\u0007\"}", "type"),
    ] {
        let answer = send(body).await;
        answer.refused(400, "INVALID_ARGUMENT");
        assert_eq!(answer.body["errors"][0]["pointer"], pointer, "{answer:?}");
    }
    for (path, body, pointer) in [
        ("/v1/queues/orders/messages/batch", json!({"messages": [["x"]]}), "/messages/0"),
        ("/v1/queues", json!({"name": "q", "config": []}), "/config"),
        ("/v1/queues", json!({"name": "q", "config": {"retry": [7]}}), "/config/retry"),
        ("/v1/queues", json!({"name": "q", "config": {"breaker": []}}), "/config/breaker"),
        ("/v1/queues/orders/messages/discard", json!({"filter": []}), "/filter"),
        ("/v1/leases/ack/batch", json!({"items": [["x"]]}), "/items/0"),
    ] {
        let answer = server.post(path, body).await;
        answer.refused(400, "INVALID_ARGUMENT");
        assert_eq!(answer.body["errors"][0]["pointer"], pointer, "a list is no object: {answer:?}");
    }
    let many: Vec<serde_json::Value> = (0..1001).map(|_| json!({"receipt": "x"})).collect();
    server.post("/v1/leases/ack/batch", json!({"items": many})).await.refused(400, "INVALID_ARGUMENT");
    server.post("/v1/queues/orders/dead/redrive", json!({"rate": 0})).await.refused(400, "INVALID_ARGUMENT");
    let request = server.request(Method::POST, path).header("content-type", "text/plain").body("{}");
    Answer::of(request.send().await.unwrap()).await.refused(415, "UNSUPPORTED_MEDIA_TYPE");
    assert_eq!(server.get("/v1/queues/orders").await.status, 404, "nothing was half done");
}

#[tokio::test]
async fn what_is_over_a_limit_is_refused_with_the_limit() {
    let server = Server::start();
    let post = async |body| server.post("/v1/queues/orders/messages", body).await;
    let large = post(json!({"body": "x".repeat(1024 * 1024 + 1)})).await;
    large.refused(400, "INVALID_ARGUMENT");
    assert!(large.body["detail"].as_str().unwrap().contains("1048576"), "{large:?}");
    assert_eq!(post(json!({"body": "x".repeat(1024 * 1024)})).await.status, 201);
    let many: Vec<serde_json::Value> = (0..1001).map(|_| json!({})).collect();
    let batch = server.post("/v1/queues/orders/messages/batch", json!({"messages": many})).await;
    batch.refused(400, "INVALID_ARGUMENT");
    assert!(batch.body["detail"].as_str().unwrap().contains("1000"), "{batch:?}");
    let heavy: Vec<serde_json::Value> = (0..17).map(|_| json!({"body": "x".repeat(1024 * 1024)})).collect();
    server
        .post("/v1/queues/orders/messages/batch", json!({"messages": heavy}))
        .await
        .refused(400, "INVALID_ARGUMENT");
    let huge = "POST /v1/queues/orders/messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 40000000\r\nconnection: close\r\n\r\n";
    let huge = raw(&server, huge.as_bytes(), false);
    assert!(huge.contains(" 413 ") && huge.contains("BODY_TOO_LARGE"), "before any of it is read: {huge}");
    let key =
        server.request(Method::POST, "/v1/queues/orders/messages").header("idempotency-key", "k".repeat(257));
    Answer::of(key.json(&json!({})).send().await.unwrap()).await.refused(400, "INVALID_ARGUMENT");
    for limit in [0, 1001] {
        let answer = server.post("/v1/queues/orders/lease", json!({"limit": limit})).await;
        answer.refused(400, "INVALID_ARGUMENT");
    }
    server.post("/v1/queues/orders/lease", json!({"lease_ms": 0})).await.refused(400, "INVALID_ARGUMENT");
    server.post("/v1/queues/orders/lease", json!({"lane": "fast"})).await.refused(400, "INVALID_ARGUMENT");
    for (verb, field) in [("nack", "delay_ms"), ("extend", "lease_ms"), ("release", "delay_ms")] {
        let items = json!({"items": [{"receipt": "forged"}, {"receipt": "forged", field: u64::MAX}]});
        let answer = server.post(&format!("/v1/leases/{verb}/batch"), items).await;
        answer.refused(400, "INVALID_ARGUMENT");
        assert_eq!(
            answer.body["errors"][0]["pointer"],
            format!("/items/1/{field}"),
            "whatever the receipt is"
        );
    }
}

#[tokio::test]
async fn hostile_names_and_paths_are_refused() {
    let server = Server::start();
    for name in ["a%20b", "a%2Fb", "%00", "%ff", "a%0d%0ab", "%C3%A9", &"q".repeat(81), "..%2f..%2fetc"] {
        let answer = server.get(&format!("/v1/queues/{name}")).await;
        answer.refused(400, "INVALID_ARGUMENT");
    }
    server.get("/v1/queues/orders/messages/not-a-uuid").await.refused(400, "INVALID_ARGUMENT");
    server.get("/v1/nothing").await.refused(404, "NO_SUCH_ROUTE");
    server.get("/test/clock").await.refused(404, "NO_SUCH_ROUTE");
    let answer = Answer::of(server.request(Method::PATCH, "/v1/queues").send().await.unwrap()).await;
    answer.refused(405, "METHOD_NOT_ALLOWED");
    for config in [
        json!({"lease_timeout_ms": 0}),
        json!({"retry": {"multiplier": 0.5}}),
        json!({"retry": {"jitter": "some"}}),
        json!({"retry": {"max_attempts": 0}}),
        json!({"retry_share": 2}),
        json!({"retry_lane": "both"}),
        json!({"breaker": {"failure_share": 7}}),
        json!({"breaker": {"min_messages": 1}}),
        json!({"dead_letter_to": "a b"}),
        json!({"weights": {"k": 1001}}),
        json!({"max_waiting": 0}),
        json!({"leas_timeout_ms": 1}),
    ] {
        let answer = server.post("/v1/queues", json!({"name": "q", "config": config})).await;
        answer.refused(400, "INVALID_ARGUMENT");
    }
    let cycle = server.post("/v1/queues", json!({"name": "q", "config": {"dead_letter_to": "q"}})).await;
    cycle.refused(409, "DEAD_LETTER_CYCLE");
}

/// Sends bytes as they are, and answers what comes back until the other side closes.
fn raw(server: &Server, bytes: &[u8], half_close: bool) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(bytes).unwrap();
    if half_close {
        // The other side may have cut the connection already.
        drop(stream.shutdown(Shutdown::Write));
    }
    let mut answer = Vec::new();
    // A connection that is cut is an answer, too.
    drop(stream.read_to_end(&mut answer));
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn broken_requests_do_not_disturb_others() {
    let server = Server::start();
    let post =
        "POST /v1/queues/orders/messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let truncated = raw(&server, format!("{post}content-length: 100\r\n\r\n{{\"body\":").as_bytes(), true);
    assert!(!truncated.contains(" 201 ") && !truncated.contains(" 500 "), "{truncated}");
    let header =
        format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "y".repeat(1024 * 1024));
    let huge = raw(&server, header.as_bytes(), true);
    assert!(huge.is_empty() || huge.contains(" 431 ") || huge.contains(" 400 "), "{huge}");
    let nonsense = raw(&server, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", true);
    assert!(!nonsense.contains(" 200 "), "{nonsense}");
    let half = raw(&server, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", true);
    assert!(half.contains(" 200 ") && half.ends_with("ok\n"), "half-closed is not closed: {half}");
    let slow: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            stream.write_all(format!("{post}content-length: 10\r\n\r\n{{").as_bytes()).unwrap();
            stream
        })
        .collect();
    assert_eq!(server.get("/v1/queues").await.body, json!({"queues": []}), "nothing came of any of them");
    server.enqueue("orders", json!({"body": "x"})).await;
    drop(slow);
    assert_eq!(server.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn a_body_of_json_is_no_deeper_than_consumers_can_take() {
    let server = Server::start();
    let nested = |depth: usize| format!("{{\"json\": {}1{}}}", "[".repeat(depth), "]".repeat(depth));
    let put = async |body: String| {
        let request = server.request(Method::POST, "/v1/queues/deep/messages");
        Answer::of(request.header("content-type", "application/json").body(body).send().await.unwrap()).await
    };
    assert_eq!(put(nested(64)).await.status, 201);
    for depth in [65, 128, 500_000] {
        let refused = put(nested(depth)).await;
        refused.refused(400, "INVALID_ARGUMENT");
        assert!(refused.body["detail"].as_str().unwrap().contains("the limit is 64"), "{refused:?}");
    }
    assert_eq!(server.count("deep", "ready").await, 1);
}
