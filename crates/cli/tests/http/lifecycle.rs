//! The server itself: it starts, ends, and is killed.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::Server;

#[tokio::test]
async fn it_says_that_it_lives_and_that_it_can_work() {
    let server = Server::start();
    assert_eq!(
        (server.get("/healthz").await.text, server.get("/readyz").await.text),
        ("ok\n".to_owned(), "ok\nstore embedded\nsurvives power_loss\n".to_owned())
    );
    let info = "redrive_store_info{store=\"embedded\",survives=\"power_loss\"} 1\n";
    assert!(server.get("/metrics").await.text.contains(info));
    let fast = Server::with(&["--durability", "none"]);
    assert_eq!(fast.get("/readyz").await.text, "ok\nstore embedded\nsurvives process_crash\n");
    assert!(server.get("/openapi.json").await.body["openapi"].as_str().unwrap().starts_with("3.1"));
}

#[tokio::test]
async fn the_description_of_the_api_is_the_one_in_the_repository() {
    let server = Server::start();
    let described = server.get("/openapi.json").await.body;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    if std::env::var_os("REDRIVE_BLESS").is_some() {
        std::fs::write(path, format!("{described:#}\n")).unwrap();
    }
    let written: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(written == described, "the API has changed: look at it, then run the test with REDRIVE_BLESS=1");
}

#[tokio::test]
async fn a_killed_server_loses_nothing_and_receipts_still_work() {
    let mut server = Server::start();
    server.enqueue("orders", json!({"body": "held"})).await;
    let held = server.lease("orders", json!({"lease_ms": 600_000})).await.remove(0);
    let address = server.address().to_owned();
    let client = server.client.clone();
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for writer in 0..8 {
        let (client, stop, url) =
            (client.clone(), Arc::clone(&stop), format!("http://{address}/v1/queues/orders/messages"));
        writers.push(tokio::spawn(async move {
            let mut taken = Vec::new();
            for n in 0.. {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let sent = client.post(&url).json(&json!({"body": format!("{writer}/{n}")})).send().await;
                let Ok(response) = sent else { break };
                let Ok(answer) = response.json::<Value>().await else { break };
                taken.extend(answer["id"].as_str().map(str::to_owned));
            }
            taken
        }));
    }
    while server.count("orders", "ready").await < 200 {
        tokio::task::yield_now().await;
    }
    server.kill_and_restart(&[]);
    stop.store(true, Ordering::SeqCst);
    let mut taken = BTreeSet::new();
    for writer in writers {
        taken.extend(writer.await.unwrap());
    }
    assert!(taken.len() >= 200);
    let mut there = BTreeSet::new();
    let export = server.get("/v1/queues/orders/messages/export").await.text;
    for line in export.lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        there.insert(message["id"].as_str().unwrap().to_owned());
    }
    let lost: Vec<&String> = taken.difference(&there).collect();
    assert!(lost.is_empty(), "{} of {} are lost", lost.len(), taken.len());
    assert_eq!(server.post("/v1/leases/ack", json!({"receipt": held["receipt"]})).await.status, 204);
}

#[tokio::test]
async fn a_server_that_is_told_to_end_answers_its_polls_and_burns_no_attempt() {
    let mut server = Server::start();
    server.create("empty", json!({})).await;
    let held = {
        server.enqueue("orders", json!({"body": "x"})).await;
        server.lease("orders", json!({"lease_ms": 600_000})).await.remove(0)
    };
    let request = server.client.post(server.url("/v1/queues/empty/lease")).json(&json!({"wait_ms": 50_000}));
    let poll = tokio::spawn(async move { request.send().await.unwrap().json::<Value>().await.unwrap() });
    let mut events = server.client.get(server.url("/v1/events")).send().await.unwrap();
    while !server.get("/metrics").await.text.contains("redrive_waiting_polls 1\n") {
        tokio::task::yield_now().await;
    }
    let ended = tokio::time::timeout(
        Duration::from_secs(10),
        tokio::task::spawn_blocking(move || {
            let ended = server.terminate();
            (server, ended)
        }),
    );
    let (mut server, ended) = ended.await.expect("it ends within ten seconds, which is a promise").unwrap();
    assert!(ended.success(), "it ends with 0");
    assert_eq!(poll.await.unwrap(), json!({"messages": []}));
    while events.chunk().await.unwrap().is_some() {}
    server.kill_and_restart(&[]);
    let id = held["id"].as_str().unwrap();
    let message = server.get(&format!("/v1/queues/orders/messages/{id}")).await.body;
    assert_eq!((&message["state"], &message["attempts"]), (&json!("leased"), &json!(1)));
    assert_eq!(server.post("/v1/leases/ack", json!({"receipt": held["receipt"]})).await.status, 204);
}

#[test]
fn a_wrong_value_stops_the_start_and_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let start = |flags: &[&str], variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
        let output =
            command.arg("serve").args(flags).envs(variables.iter().copied()).current_dir(dir.path()).output();
        let output = output.unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(start(&["--listen", "nowhere"], &[]).contains("listen: `nowhere`"));
    assert!(start(&[], &[("MAX_ATTEMPTS", "lots")]).contains("MAX_ATTEMPTS: `lots`"));
    std::fs::write(dir.path().join("redrive.toml"), "listen = \"127.0.0.1:0\"\nlease_timeout = 5\n").unwrap();
    let said = start(&[], &[]);
    assert!(said.contains("redrive.toml:2:1: unknown key `lease_timeout`"), "{said}");
}

#[tokio::test]
async fn a_second_server_on_the_directory_is_refused() {
    let server = Server::start();
    let output = Command::new(env!("CARGO_BIN_EXE_redrive"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(server.dir.path().join("data"))
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("another process has the directory"));
}
