//! The trail: who did what, from where, and what came of it.

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Answer, Server};

async fn entries(server: &Server, query: &str) -> Vec<Value> {
    server.get(&format!("/v1/audit{query}")).await.body["entries"].as_array().unwrap().clone()
}

#[tokio::test]
async fn every_act_of_an_operator_is_written_down_with_what_came_of_it() {
    let server = Server::keyed(&[]);
    server.create("jobs", json!({"retry": {"max_attempts": 1}})).await;
    server.create("more", json!({})).await;
    let id = server.enqueue("jobs", json!({"body": "x"})).await;
    let (key, _) = server.key(&[("read", "jobs")], json!({})).await;
    let message = format!("/v1/queues/jobs/messages/{id}");
    let none = "/v1/queues/jobs/messages/01987654-3210-7abc-8def-0123456789ab";
    let lease = none.replace("messages", "leases");
    let subscription = json!({"id": "s", "pattern": "a", "target": {"kind": "handler"}});
    let replay = "/v1/subscriptions/s/replays/01987654-3210-7abc-8def-0123456789ab".to_owned();
    // Each with the word for it and the result.
    let acts: Vec<(Method, String, Value, &str, &str)> = vec![
        (Method::POST, "/v1/queues".into(), json!({"name": "jobs"}), "create_queue", "QUEUE_EXISTS"),
        (Method::PUT, "/v1/queues/jobs".into(), json!({"config": {}}), "update_queue", "ok"),
        (Method::POST, "/v1/queues/jobs/pause".into(), json!({}), "pause_queue", "ok"),
        (Method::POST, "/v1/queues/jobs/resume".into(), json!({}), "resume_queue", "ok"),
        (Method::PUT, "/v1/queues/jobs/weights".into(), json!({}), "set_weights", "ok"),
        (Method::POST, "/v1/queues/jobs/breaker/trip".into(), json!({}), "trip_breaker", "NO_BREAKER"),
        (Method::POST, "/v1/queues/jobs/breaker/reset".into(), json!({}), "reset_breaker", "NO_BREAKER"),
        (Method::POST, format!("{message}/reschedule"), json!({"delay_ms": 5}), "reschedule_message", "ok"),
        (
            Method::POST,
            format!("{none}/reschedule"),
            json!({"delay_ms": 5}),
            "reschedule_message",
            "NOT_FOUND",
        ),
        (Method::POST, format!("{lease}/extend"), json!({}), "extend_lease", "NOT_FOUND"),
        (Method::POST, format!("{lease}/release"), json!({}), "release_lease", "NOT_FOUND"),
        (Method::GET, "/v1/queues/jobs/messages/export".into(), json!({}), "export_messages", "ok"),
        (Method::POST, "/v1/queues/jobs/requeue_expired".into(), json!({}), "requeue_expired", "ok"),
        (Method::POST, format!("{message}/move"), json!({"queue": "more"}), "move_messages", "ok"),
        (Method::DELETE, none.into(), json!({}), "discard_messages", "NOT_FOUND"),
        (Method::POST, "/v1/queues/jobs/dead/redrive".into(), json!({}), "redrive", "ok"),
        (Method::POST, "/v1/queues/jobs/dead/discard".into(), json!({}), "discard_dead", "ok"),
        (Method::POST, "/v1/queues/jobs/purge".into(), json!({}), "purge_queue", "ok"),
        (Method::DELETE, "/v1/queues/jobs?force=true".into(), json!({}), "delete_queue", "ok"),
        (Method::PUT, "/v1/topics/a.*".into(), json!({}), "set_topic", "ok"),
        (Method::DELETE, "/v1/topics/b".into(), json!({}), "delete_topic", "TOPIC_NOT_FOUND"),
        (Method::POST, "/v1/subscriptions".into(), subscription, "create_subscription", "ok"),
        (Method::PUT, "/v1/subscriptions/s".into(), json!({"pattern": "b"}), "update_subscription", "ok"),
        (Method::POST, "/v1/subscriptions/s/pause".into(), json!({}), "pause_subscription", "ok"),
        (Method::POST, "/v1/subscriptions/s/resume".into(), json!({}), "resume_subscription", "ok"),
        (Method::POST, "/v1/subscriptions/s/disable".into(), json!({}), "disable_subscription", "ok"),
        (Method::POST, "/v1/subscriptions/s/enable".into(), json!({}), "enable_subscription", "ok"),
        (Method::POST, "/v1/subscriptions/s/secret".into(), json!({}), "rotate_secret", "WRONG_TARGET"),
        (Method::POST, "/v1/subscriptions/s/breaker/trip".into(), json!({}), "trip_breaker", "ok"),
        (Method::POST, "/v1/subscriptions/s/breaker/reset".into(), json!({}), "reset_breaker", "ok"),
        (Method::POST, "/v1/subscriptions/s/dead/redrive".into(), json!({}), "redrive", "ok"),
        (
            Method::POST,
            "/v1/subscriptions/s/replays".into(),
            json!({"from": "2020-01-01T00:00:00.000Z"}),
            "replay",
            "ok",
        ),
        (Method::DELETE, replay, json!({}), "cancel_replay", "REPLAY_NOT_FOUND"),
        (
            Method::POST,
            "/v1/subscriptions/s/resend".into(),
            json!({"event": "01987654-3210-7abc-8def-0123456789ab"}),
            "resend",
            "EVENT_NOT_FOUND",
        ),
        (Method::DELETE, "/v1/subscriptions/s".into(), json!({}), "delete_subscription", "ok"),
        (Method::POST, format!("/v1/keys/{key}/rotate"), json!({}), "rotate_key", "ok"),
        (Method::POST, format!("/v1/keys/{key}/revoke"), json!({}), "revoke_key", "ok"),
    ];
    let before = entries(&server, "").await.len();
    for (method, path, body, ..) in &acts {
        let answer = Answer::of(server.request(method.clone(), path).json(body).send().await.unwrap()).await;
        assert!(answer.status < 500, "{path}: {answer:?}");
    }
    let all = entries(&server, "").await;
    let told: Vec<(&str, &str)> = all[before..]
        .iter()
        .map(|entry| (entry["what"].as_str().unwrap(), entry["result"].as_str().unwrap()))
        .collect();
    let wanted: Vec<(&str, &str)> = acts.iter().map(|(.., what, result)| (*what, *result)).collect();
    assert_eq!(told, wanted);
    for entry in &all {
        assert_eq!((&entry["name"], &entry["from"]), (&json!("bootstrap"), &json!("127.0.0.1")), "{entry}");
        assert!(entry["at"].is_string() && entry["key"].is_string() && entry["on"].is_string(), "{entry}");
    }
    assert_eq!(all.iter().filter(|entry| entry["on"] == json!(key)).count(), 3, "made, rotated, revoked");
    // Found again by what, result, and page by page.
    assert_eq!(entries(&server, "?what=pause_queue").await.len(), 1);
    assert_eq!(entries(&server, "?on=jobs&result=NO_BREAKER").await.len(), 2);
    let page = server.get("/v1/audit?limit=5").await.body;
    let next = page["next_cursor"].as_str().unwrap();
    assert_eq!(entries(&server, &format!("?cursor={next}")).await, all[5..].to_vec());
    server.get("/v1/audit?cursor=x").await.refused(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn what_was_refused_is_written_down_and_outlives_the_server() {
    let mut server = Server::keyed(&[]);
    server.create("a.jobs", json!({})).await;
    server.create("b.jobs", json!({})).await;
    let (id, token) = server.key(&[("consume", "a.*")], json!({})).await;
    for _ in 0..7 {
        let request =
            server.request_as(Some(&token), Method::POST, "/v1/queues/b.jobs/lease").json(&json!({}));
        assert_eq!(request.send().await.unwrap().status(), 403);
        assert_eq!(server.request_as(None, Method::GET, "/v1/queues").send().await.unwrap().status(), 401);
    }
    assert_eq!(server.request_as(Some(&token), Method::GET, "/v1/keys").send().await.unwrap().status(), 403);
    assert!(server.terminate().success());
    server.kill_and_restart(&[]);
    let all = entries(&server, "").await;
    let of = |what: &str| -> Vec<&Value> { all.iter().filter(|entry| entry["what"] == what).collect() };
    let sum = |entries: &[&Value]| entries.iter().map(|entry| entry["count"].as_u64().unwrap()).sum::<u64>();
    let leases = of("lease");
    assert_eq!(sum(&leases), 7, "{all:?}");
    assert!(leases.iter().all(|entry| {
        entry["key"] == json!(id) && entry["on"] == "b.jobs" && entry["result"] == "FORBIDDEN"
    }));
    let strangers = of("authenticate");
    assert_eq!(sum(&strangers), 7);
    assert!(strangers.iter().all(|entry| entry["result"] == "KEY_MISSING" && entry["from"] == "127.0.0.1"));
    assert_eq!(sum(&of("list_keys")), 1);
    let metrics = server.get("/metrics").await.text;
    assert!(!metrics.contains("FORBIDDEN"), "metrics begin anew");
}

const SCOPES_OVER_HEX: [&str; 16] =
    ["0*", "1*", "2*", "3*", "4*", "5*", "6*", "7*", "8*", "9*", "aa*", "b*", "c*", "d*", "e*", "f*"];

#[tokio::test]
async fn a_queue_that_comes_into_being_by_a_message_is_written_down() {
    let server = Server::keyed(&["--auto-create", "true"]);
    server.enqueue("new", json!({"body": "x"})).await;
    server.enqueue("new", json!({"body": "x"})).await;
    let all = entries(&server, "").await;
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(
        (&all[0]["what"], &all[0]["on"], &all[0]["result"]),
        (&json!("create_queue"), &json!("new"), &json!("ok"))
    );
}

#[tokio::test]
async fn who_administrates_some_queues_reads_about_those() {
    let server = Server::keyed(&[]);
    server.create("a.jobs", json!({})).await;
    server.create("b.jobs", json!({})).await;
    // Ids of keys are no names of queues, though they look like some.
    let letters = SCOPES_OVER_HEX.map(|pattern| ("admin", pattern));
    let (_, hex) = server.key(&letters, json!({})).await;
    let (id, token) = server.key(&[("admin", "a.*")], json!({})).await;
    let (own, _) = server.key(&[("read", "a.jobs")], json!({})).await;
    let read = async |token: &str| {
        let seen = server.request_as(Some(token), Method::GET, "/v1/audit").send().await.unwrap();
        let seen: Value = seen.json().await.unwrap();
        let entry = |entry: &Value| (entry["what"].as_str().unwrap().to_owned(), entry["on"].clone());
        seen["entries"].as_array().unwrap().iter().map(entry).collect::<Vec<_>>()
    };
    let create = |what: &str, on: &str| (what.to_owned(), json!(on));
    let wanted = [create("create_queue", "a.jobs"), create("create_key", &id), create("create_key", &own)];
    assert_eq!(read(&token).await, wanted);
    assert_eq!(read(&hex).await.iter().filter(|(what, _)| what == "create_key").count(), 1, "its own");
}

#[tokio::test]
async fn log_lines_hold_no_control_characters_whatever_is_in_an_error() {
    for format in ["json", "human"] {
        let server = Server::with(&["--log-format", format]);
        server.create("jobs", json!({})).await;
        server.enqueue("jobs", json!({"body": "x"})).await;
        let receipt = server.lease("jobs", json!({})).await[0]["receipt"].clone();
        let error = "\u{1b}[2J\u{1b}]0;owned\u{7}\r\n2026-01-01 ERROR forged line\u{0}\u{9b}31m\u{7f}end";
        let nack = server.post("/v1/leases/nack", json!({"receipt": receipt, "error": error})).await;
        assert_eq!(nack.status, 200, "{nack:?}");
        let log = server.log();
        assert!(log.contains("forged line"), "the error is told: {log}");
        for line in log.lines() {
            assert!(!line.chars().any(char::is_control), "{line:?}");
            assert!(!line.starts_with("2026-01-01 ERROR"), "{line:?}");
        }
    }
}
