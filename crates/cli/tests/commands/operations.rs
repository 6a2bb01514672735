//! `redrive operation`.

use serde_json::{Value, json};

use crate::run::{masked, redrive};
use crate::server::Server;

/// An operation that takes long, and its id.
async fn slow(server: &Server) -> String {
    let messages: Vec<Value> = (0..50).map(|n| json!({"body": n.to_string()})).collect();
    server.post("/v1/queues/orders/messages/batch", json!({"messages": messages})).await;
    let started = redrive(server, "message discard orders --all --yes --rate 1/s -o id").ok();
    started.trim_end().to_owned()
}

#[tokio::test]
async fn an_operation_is_listed_shown_paused_resumed_and_cancelled() {
    let server = Server::start();
    let id = slow(&server).await;
    let table = masked(&redrive(&server, "operation list").ok());
    let head = "ID                                    KIND     QUEUE   STATE    DONE  TOTAL  REFUSED  STARTED\n\
                00000000-0000-0000-0000-000000000000  discard  orders  running  ";
    assert!(table.starts_with(head), "{table}");
    assert_eq!(redrive(&server, "operation list -o id").ok(), format!("{id}\n"));
    let shown = redrive(&server, &format!("operation show {id}")).ok();
    assert!(shown.contains("\ntotal    50\n") && shown.contains("\nrate     1/s\n"), "{shown}");
    assert!(shown.contains("\nfilter   everything\n") && shown.contains("\nuntil    "), "{shown}");
    server.enqueue("orders", json!({"body": "x", "type": "x"})).await;
    let narrow = redrive(&server, "message discard orders --state ready --type x --yes -o id").ok();
    let narrow = redrive(&server, &format!("operation show {}", narrow.trim_end())).ok();
    assert!(narrow.contains(r#"filter   {"states":["ready"],"types":["x"]}"#), "{narrow}");
    redrive(&server, &format!("operation wait {id} --timeout 50ms")).failed(8, "did not end within 50ms");
    assert_eq!(
        redrive(&server, &format!("operation pause {id}")).ok(),
        format!("operation {id} is paused\n")
    );
    assert_eq!(redrive(&server, &format!("operation resume {id} --json")).json()["state"], "running");
    redrive(&server, &format!("operation cancel {id}")).ok();
    let ended = redrive(&server, &format!("operation wait {id} --json"));
    assert_eq!(ended.code, 4, "{ended:?}");
    assert!(ended.err.contains("was cancelled"), "{ended:?}");
    assert_eq!(serde_json::from_str::<Value>(&ended.out).unwrap()["state"], "cancelled");
    redrive(&server, &format!("operation pause {id}")).failed(4, "redrive: ");
    redrive(&server, "operation show 0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b").failed(3, "redrive: ");
    redrive(&server, "operation show ../queues").failed(2, "invalid value '../queues'");
    redrive(&server, "operation wait x --timeout 1").failed(2, "invalid value");
}

#[tokio::test]
async fn who_waits_for_an_operation_is_told_how_far_it_is() {
    let server = Server::start();
    let messages: Vec<Value> = (0..1_500).map(|n| json!({"body": n.to_string()})).collect();
    for half in messages.chunks(1_000) {
        server.post("/v1/queues/orders/messages/batch", json!({"messages": half})).await;
    }
    let ran = redrive(&server, "queue purge orders --yes --wait");
    assert!(
        ran.err.contains("redrive: discard running: 0 of 1500"),
        "lines where there is no terminal: {ran:?}"
    );
    assert!(ran.ok().contains("\ndone     1500\n"));
}
