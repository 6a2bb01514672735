//! Dead letters and work on many messages.

use serde_json::{Value, json};

use crate::server::Server;

/// Makes so many messages dead, with an error of one of two kinds.
async fn bury(server: &Server, count: usize) {
    let messages: Vec<Value> = (0..count).map(|n| json!({"body": n.to_string()})).collect();
    server.post("/v1/queues/orders/messages/batch", json!({"messages": messages})).await;
    let leased = server.lease("orders", json!({"limit": count})).await;
    let items: Vec<Value> = (0..)
        .zip(&leased)
        .map(|(n, message)| {
            let error = if n % 3 == 0 { format!("timeout after {n} ms") } else { format!("bad request {n}") };
            json!({"receipt": message["receipt"], "error": error})
        })
        .collect();
    server.post("/v1/leases/bury/batch", json!({"items": items})).await;
}

/// Waits for the end of an operation.
async fn ended(server: &Server, id: &Value) -> Value {
    let path = format!("/v1/operations/{}", id.as_str().unwrap());
    loop {
        let operation = server.get(&path).await.body;
        if !["running", "paused"].contains(&operation["state"].as_str().unwrap()) {
            return operation;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn dead_letters_are_listed_grouped_and_redriven_by_group() {
    let server = Server::start();
    bury(&server, 30).await;
    let dead = server.get("/v1/queues/orders/dead?limit=5").await.body;
    assert_eq!(dead["messages"].as_array().unwrap().len(), 5);
    assert_eq!(dead["messages"][0]["dead_reason"], "buried");
    let groups = server.get("/v1/queues/orders/dead/groups").await.body;
    let counts: Vec<u64> = groups["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| group["messages"].as_u64().unwrap())
        .collect();
    assert_eq!(counts, [20, 10], "numbers do not make another group");
    let filter = json!({"fingerprint": groups["groups"][1]["fingerprint"]});
    let redrive = |dry_run: bool| json!({"filter": filter, "dry_run": dry_run, "by": "ann", "reason": "fixed in 1.2", "rate": 1000});
    let dry = server.post("/v1/queues/orders/dead/redrive", redrive(true)).await;
    assert_eq!((dry.status, &dry.body), (200, &json!({"matched": 10})));
    assert_eq!(server.count("orders", "dead").await, 30);
    let started = server.post("/v1/queues/orders/dead/redrive", redrive(false)).await;
    assert_eq!(
        (started.status, &started.body["kind"], &started.body["total"]),
        (202, &json!("redrive"), &json!(10))
    );
    let operation = ended(&server, &started.body["id"]).await;
    assert_eq!((&operation["state"], &operation["applied"]), (&json!("done"), &json!(10)));
    let meant = json!({"states": ["dead"], "fingerprint": filter["fingerprint"]});
    assert_eq!((&started.body["filter"], &operation["filter"]), (&meant, &meant), "what is carried out");
    assert_eq!((server.count("orders", "dead").await, server.count("orders", "ready").await), (20, 10));
    let leased = server.lease("orders", json!({})).await;
    assert_eq!(leased[0]["note"], "Retry requested by ann: fixed in 1.2");
    assert_eq!((&leased[0]["redrives"], &leased[0]["attempts"]), (&json!(1), &json!(1)));
    let list = server.get("/v1/operations").await.body;
    assert_eq!(list["operations"].as_array().unwrap().len(), 1);
    let wrong = json!({"filter": {"states": ["ready"]}});
    server.post("/v1/queues/orders/dead/redrive", wrong).await.refused(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn an_operation_is_paused_resumed_and_cancelled_and_survives_a_kill() {
    let mut server = Server::start();
    bury(&server, 60).await;
    let started = server.post("/v1/queues/orders/dead/redrive", json!({"rate": 5})).await.body;
    let path = |verb: &str| format!("/v1/operations/{}{verb}", started["id"].as_str().unwrap());
    assert_eq!(server.post(&path("/pause"), json!({})).await.body["state"], "paused");
    while server.get(&path("")).await.body["state"] != "paused" {
        tokio::task::yield_now().await;
    }
    let paused = server.get(&path("")).await.body;
    server.kill_and_restart(&[]);
    assert_eq!(server.get(&path("")).await.body, paused);
    assert_eq!(server.post(&path("/resume"), json!({})).await.body["state"], "running");
    while server.get(&path("")).await.body["applied"] == paused["applied"] {
        tokio::task::yield_now().await;
    }
    server.kill_and_restart(&[]);
    assert_eq!(server.post(&path("/cancel"), json!({})).await.status, 200);
    let operation = ended(&server, &started["id"]).await;
    let applied = operation["applied"].as_u64().unwrap();
    assert_eq!(operation["state"], "cancelled");
    assert_eq!(server.count("orders", "dead").await + server.count("orders", "ready").await, 60);
    assert!(server.count("orders", "ready").await >= applied, "what was done stays done");
    server.post(&path("/pause"), json!({})).await.refused(409, "OPERATION_ENDED");
    server
        .get("/v1/operations/0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b")
        .await
        .refused(404, "OPERATION_NOT_FOUND");
}

#[tokio::test]
async fn messages_are_moved_discarded_and_purged_by_the_thousand() {
    let server = Server::start();
    server.create("other", json!({})).await;
    for _ in 0..3 {
        let messages: Vec<Value> =
            (0..700).map(|n| json!({"body": "x", "type": format!("t{}", n % 2)})).collect();
        server.post("/v1/queues/orders/messages/batch", json!({"messages": messages})).await;
    }
    let moved = json!({"queue": "other", "filter": {"types": ["t0"]}});
    let started = server.post("/v1/queues/orders/messages/move", moved).await.body;
    assert_eq!(ended(&server, &started["id"]).await["applied"], 1050);
    assert_eq!((server.count("orders", "ready").await, server.count("other", "ready").await), (1050, 1050));
    server.lease("orders", json!({"limit": 50})).await;
    let discard = json!({"filter": {"types": ["t1"]}, "dry_run": true});
    let dry = server.post("/v1/queues/orders/messages/discard", discard).await.body;
    assert_eq!(dry["matched"], 1000, "leased ones only by force");
    let purge = server.post("/v1/queues/orders/purge", json!({"force": true})).await;
    assert_eq!(purge.status, 202);
    assert_eq!(ended(&server, &purge.body["id"]).await["applied"], 1050);
    assert_eq!(server.count("orders", "leased").await, 0);
    let dead = server.post("/v1/queues/other/dead/discard", json!({"dry_run": true})).await.body;
    assert_eq!(dead["matched"], 0);
}

#[tokio::test]
async fn an_operation_says_which_messages_it_is_about_and_up_to_which() {
    let server = Server::start();
    bury(&server, 4).await;
    let dead = server.get("/v1/queues/orders/dead").await.body;
    let ids: Vec<&Value> =
        dead["messages"].as_array().unwrap().iter().map(|message| &message["id"]).collect();
    let filter = json!({
        "states": ["dead"], "ids": [ids[0], ids[2]], "reasons": ["buried"], "attempts_min": 1, "attempts_max": 7,
        "created_after": "2020-01-01T00:00:00.000Z", "created_before": "2099-12-31T23:59:59.999Z", "error": "a",
    });
    let redrive = json!({"filter": filter, "rate": 1});
    let started = server.post("/v1/queues/orders/dead/redrive", redrive).await.body;
    assert_eq!((&started["filter"], &started["until"]), (&filter, ids[2]), "the last that matches");
    bury(&server, 1).await;
    let last = server.get("/v1/queues/orders/messages?newest_first=true&limit=1").await.body;
    let purge = server.post("/v1/queues/orders/purge", json!({})).await.body;
    assert_eq!((&purge["filter"], &purge["until"]), (&json!({}), &last["messages"][0]["id"]));
    let nothing = json!({"filter": {"types": ["nothing"]}});
    let nothing = server.post("/v1/queues/orders/messages/discard", nothing).await.body;
    assert_eq!(nothing["until"], "00000000-0000-0000-0000-000000000000", "before every message");
}
