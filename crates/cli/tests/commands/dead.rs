//! `redrive dead`.

use serde_json::{Value, json};

use crate::run::{masked, redrive};
use crate::server::Server;

/// Makes messages dead, with an error of one of two kinds.
async fn bury(server: &Server, count: usize) {
    let messages: Vec<Value> =
        (0..count).map(|n| json!({"body": n.to_string(), "type": format!("t{}", n % 2)})).collect();
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

#[tokio::test]
async fn the_dead_are_listed_grouped_and_shown() {
    let server = Server::start();
    bury(&server, 6).await;
    let groups = redrive(&server, "dead groups orders --json").json();
    let prints: Vec<&str> =
        groups.as_array().unwrap().iter().map(|group| group["fingerprint"].as_str().unwrap()).collect();
    let table = masked(&redrive(&server, "dead groups orders").ok());
    let expected = format!(
        "FINGERPRINT       MESSAGES  FIRST                     LAST                      SAMPLE\n\
         {}         4  0000-00-00T00:00:00.000Z  0000-00-00T00:00:00.000Z  bad request ",
        prints[0]
    );
    assert!(table.starts_with(&expected), "{table}");
    assert_eq!(redrive(&server, "dead groups orders --limit 1 -o id").ok(), format!("{}\n", prints[0]));
    let table = masked(&redrive(&server, &format!("dead list orders --fingerprint {}", prints[1])).ok());
    let expected = format!(
        "ID                                    REASON  ATTEMPTS  DIED                      FINGERPRINT       LAST ERROR\n\
         00000000-0000-0000-0000-000000000000  buried         1  0000-00-00T00:00:00.000Z  {}  timeout after 0 ms\n",
        prints[1]
    );
    assert!(table.starts_with(&expected), "{table}");
    let count = |line: &str| redrive(&server, &format!("dead list orders -o id {line}")).ok().lines().count();
    assert_eq!((count(""), count("--error bad"), count("--type t0 --error timeout")), (6, 4, 1));
    assert_eq!(
        (count("--dead-reason buried"), count("--dead-reason max_attempts"), count("--limit 2")),
        (6, 0, 2)
    );
    let id = redrive(&server, "dead list orders -o id --limit 1").ok();
    let shown = redrive(&server, &format!("dead show orders {id}")).ok();
    assert!(
        shown.contains("dead reason   buried\n") && shown.contains("last error    timeout after 0 ms\n"),
        "{shown}"
    );
    redrive(&server, "dead list orders --dead-reason old")
        .failed(2, "[possible values: max_attempts, buried");
    redrive(&server, "dead list nope").failed(3, "there is no queue nope");
    redrive(&server, "dead groups nope").failed(3, "there is no queue nope");
}

#[tokio::test]
async fn the_dead_come_back_when_somebody_agrees() {
    let server = Server::start();
    bury(&server, 9).await;
    redrive(&server, "dead redrive orders").failed(2, "say which messages, or --all");
    redrive(&server, "dead redrive orders --all")
        .failed(2, "this would redrive 9 dead messages of orders: say --yes");
    assert_eq!(
        redrive(&server, "dead redrive orders --all --dry-run").ok(),
        "would redrive 9 dead messages of orders\n"
    );
    let would = redrive(&server, "dead redrive orders --error timeout --dry-run").ok();
    assert_eq!(would, "would redrive 3 dead messages of orders (error timeout)\n");
    assert_eq!(redrive(&server, "dead redrive orders --error timeout --dry-run -o id").ok(), "3\n");
    assert_eq!(server.count("orders", "dead").await, 9, "nothing was changed");
    // One is soon looked after, and not asked about.
    let id = redrive(&server, "dead list orders -o id --limit 1").ok();
    let one = redrive(
        &server,
        &format!("dead redrive orders --id {} --wait --by ann --reason fixed --json", id.trim_end()),
    )
    .json();
    assert_eq!((&one["state"], &one["applied"], &one["by"]), (&json!("done"), &json!(1), &json!("ann")));
    assert_eq!(server.lease("orders", json!({})).await[0]["note"], "Retry requested by ann: fixed");
    let some = redrive(&server, "dead redrive orders --type t1 --yes --wait --rate 1000/s");
    let card = masked(&some.ok());
    let expected = "\
id       00000000-0000-0000-0000-000000000000
kind     redrive
queue    orders
state    done
done     4
total    4
refused  0
";
    assert!(card.starts_with(expected) && card.ends_with("rate     1000/s\n"), "{card}");
    let begun = masked(&redrive(&server, "dead redrive orders --all --yes").ok());
    let id = "00000000-0000-0000-0000-000000000000";
    assert_eq!(begun, format!("operation {id} has begun to redrive 4 dead messages of orders\n"));
    while server.count("orders", "dead").await > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        redrive(&server, "dead redrive orders --all --yes").ok(),
        "there is no dead message of orders\n"
    );
    assert_eq!(redrive(&server, "dead redrive orders --all --yes --json").json(), json!({"matched": 0}));
    redrive(&server, "dead redrive orders --all --rate 0/s")
        .failed(2, "must be a number of messages a second");
}

#[tokio::test]
async fn the_dead_are_discarded_when_somebody_agrees() {
    let server = Server::start();
    bury(&server, 3).await;
    server.enqueue("orders", json!({"body": "alive"})).await;
    redrive(&server, "dead discard orders").failed(2, "say which messages, or --all");
    redrive(&server, "dead discard orders --error timeout")
        .failed(2, "this would discard 1 dead message of orders (error timeout)");
    assert_eq!(
        redrive(&server, "dead discard orders --all --dry-run").ok(),
        "would discard 3 dead messages of orders\n"
    );
    assert_eq!(server.count("orders", "dead").await, 3);
    redrive(&server, "dead discard orders --all --yes --wait -q").ok();
    assert_eq!((server.count("orders", "dead").await, server.count("orders", "ready").await), (0, 1));
}

#[tokio::test]
async fn a_redrive_that_is_refused_in_part_ends_so() {
    let server = Server::start();
    let unique = json!({"body": "x", "dedup_key": "k", "unique": "until_done"});
    server.enqueue("orders", unique.clone()).await;
    let receipt = server.lease("orders", json!({})).await[0]["receipt"].clone();
    server.post("/v1/leases/bury", json!({"receipt": receipt})).await;
    server.enqueue("orders", unique).await;
    let ran = redrive(&server, "dead redrive orders --all --wait --json");
    assert_eq!(ran.code, 7, "{ran:?}");
    assert_eq!(serde_json::from_str::<Value>(&ran.out).unwrap()["refused"], 1);
    assert!(ran.err.contains("1 of 1 messages failed"), "{ran:?}");
}
