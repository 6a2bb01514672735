//! `redrive queue`.

use serde_json::{Value, json};

use crate::run::{masked, redrive};
use crate::server::Server;

#[tokio::test]
async fn a_queue_is_created_listed_shown_and_changed() {
    let server = Server::with_clock();
    let line = "queue create orders --lease-timeout 1m --max-attempts none --jitter none --breaker on --weight acme=3 \
                --retain-dead 7d,count=1000";
    assert_eq!(redrive(&server, line).ok(), "queue orders created\n");
    redrive(&server, line).failed(4, "redrive: there is a queue orders already");
    assert_eq!(redrive(&server, "queue create mails -o id").ok(), "mails\n");
    server.enqueue("orders", json!({"body": "x"})).await;
    server.enqueue("orders", json!({"body": "x", "delay_ms": 60_000})).await;
    server.advance(192_000 - 60_000).await;
    let list = "\
QUEUE   STATE   READY  DELAYED  LEASED  DEAD  OLDEST
mails   active      0        0       0     0       -
orders  active      2        0       0     0   2m12s
";
    assert_eq!(redrive(&server, "queue list").ok(), list);
    assert_eq!(redrive(&server, "queue list -o id").ok(), "mails\norders\n");
    let all = redrive(&server, "queue list --json").json();
    assert_eq!(all, server.get("/v1/queues").await.body["queues"], "the server's own JSON");
    let one = redrive(&server, "queue list --limit 1");
    assert!(one.err.contains("redrive: there are more: --limit N, or --all"), "{one:?}");
    assert!(redrive(&server, "queue list --limit 1 -q").err.is_empty());

    let shown = masked(&redrive(&server, "queue show orders").ok());
    let expected = "\
queue              orders
state              active
created            0000-00-00T00:00:00.000Z
version            1
ready              2
delayed            0
leased             0
dead               0
done               0
overdue            0
retries in flight  0
oldest ready       2m12s
dedup keys         0

SETTING                VALUE                                                         FROM
lease-timeout          1m                                                            queue
max-lease              12h                                                           default
max-attempts           none                                                          queue
";
    assert!(shown.starts_with(expected), "{shown}");
    assert!(
        shown.contains("\njitter                 none  ")
            && shown.contains("\nretain-dead            7d,count=1000  ")
    );
    let stats = redrive(&server, "queue show orders --stats --json").json();
    assert_eq!((&stats["states"]["ready"], &stats["totals"]["enqueue"]), (&json!(2), &json!(2)));
    redrive(&server, "queue show nope").failed(3, "redrive: there is no queue nope");

    let set = redrive(
        &server,
        "queue set orders --base-delay 250ms --unset max-attempts --unset breaker --weight other=2",
    );
    assert_eq!(set.ok(), "queue orders has settings of version 2\n");
    let config = server.get("/v1/queues/orders").await.body["config"].clone();
    let expected = json!({
        "lease_timeout_ms": 60_000, "retry": {"base_delay_ms": 250, "jitter": "none"},
        "retain_dead": {"age_ms": 604_800_000, "count": 1000}, "weights": {"acme": 3, "other": 2},
    });
    assert_eq!(config, expected);
    redrive(&server, "queue set orders").failed(2, "name a setting to change");
    redrive(&server, "queue set orders --jitter full --unset jitter")
        .failed(2, "jitter must not be both set and unset");
    redrive(&server, "queue set orders --lease-timeout 8d").failed(2, "lease_timeout");
    redrive(&server, "queue set nope --jitter full").failed(3, "there is no queue nope");
}

#[tokio::test]
async fn a_queue_is_paused_and_goes_on() {
    let server = Server::with_clock();
    server.create("orders", json!({})).await;
    assert_eq!(redrive(&server, "queue pause orders").ok(), "queue orders is paused\n");
    assert!(redrive(&server, "queue list").ok().contains("orders  paused"));
    assert_eq!(redrive(&server, "queue resume orders").ok(), "queue orders goes on\n");
    let paused = redrive(&server, "queue pause orders --key acme --for 1h").ok();
    assert_eq!(masked(&paused), "key `acme` of queue orders is paused until 0000-00-00T00:00:00.000Z\n");
    assert_eq!(redrive(&server, "queue show orders --json").json()["pauses"][0]["key"], "acme");
    assert!(redrive(&server, "queue show orders").ok().contains("paused             key `acme`, until "));
    redrive(&server, "queue resume orders --key acme").ok();
    let until = redrive(&server, "queue pause orders --until 2100-01-01T00:00:00Z --json").json();
    assert_eq!(
        (&until["paused"], &until["pauses"][0]["until"]),
        (&json!(true), &json!("2100-01-01T00:00:00.000Z"))
    );
    redrive(&server, "queue pause orders --until tomorrow").failed(2, "must be a span such as");
    redrive(&server, "queue pause orders --until 1h --for 1h").failed(2, "cannot be used with");
    redrive(&server, "queue pause nope").failed(3, "there is no queue nope");
}

#[tokio::test]
async fn what_is_in_a_queue_is_counted_before_it_goes() {
    let server = Server::start();
    for _ in 0..3 {
        server.enqueue("orders", json!({"body": "x"})).await;
    }
    server.lease("orders", json!({})).await;
    let would = "would discard 2 messages of orders that are not leased\n";
    assert_eq!(redrive(&server, "queue purge orders --dry-run").ok(), would);
    assert_eq!(redrive(&server, "queue purge orders --force --dry-run --json").json(), json!({"matched": 3}));
    redrive(&server, "queue purge orders")
        .failed(2, "this would discard 2 messages of orders that are not leased: say --yes");
    assert_eq!((server.count("orders", "ready").await, server.count("orders", "leased").await), (2, 1));
    let purged = redrive(&server, "queue purge orders --yes --wait --json").json();
    assert_eq!((&purged["state"], &purged["applied"]), (&json!("done"), &json!(2)));
    let none = redrive(&server, "queue purge orders --yes").ok();
    assert_eq!(none, "there is no message of orders that are not leased\n");
    assert_eq!((server.count("orders", "ready").await, server.count("orders", "leased").await), (0, 1));

    redrive(&server, "queue delete orders").failed(2, "this would delete queue orders with 1 message in it");
    let would = redrive(&server, "queue delete orders --dry-run").ok();
    assert_eq!(would, "would delete queue orders with 1 message in it\n");
    redrive(&server, "queue delete orders --yes").failed(4, "redrive: ");
    assert_eq!(redrive(&server, "queue delete orders --force --yes").ok(), "queue orders deleted\n");
    redrive(&server, "queue delete orders --force --yes").failed(3, "there is no queue orders");
    assert_eq!(server.get("/v1/queues").await.body["queues"], json!([]));
    assert_eq!(redrive(&server, "queue list --json").json(), Value::Array(Vec::new()));
    assert_eq!(redrive(&server, "queue list").ok(), "QUEUE  STATE  READY  DELAYED  LEASED  DEAD  OLDEST\n");
}

#[test]
fn what_cannot_be_meant_is_refused_before_a_server_is_asked() {
    let server = Server::start();
    for (line, said) in [
        ("queue create a/b", "byte 1 is not allowed"),
        ("queue create ..", "cannot be named in an address"),
        ("queue show .", "cannot be named in an address"),
        ("queue create q --max-attempts many", "or none for no limit"),
        ("queue create q --lease-timeout 30", "has no unit: write 30s"),
        ("queue create q --dead-letter-to a/b", "--dead-letter-to"),
        ("queue lsit", "some similar subcommands exist: 'set', 'list'"),
        ("queue list --limti 1", "a similar argument exists: '--limit'"),
        ("queue list --limit 0", "0 is not in 1.."),
        ("queue list --limit 1 --all", "cannot be used with"),
        ("queue set q --unset jiter", "a similar value exists: 'jitter'"),
        ("queue purge q --yes --dry-run", "cannot be used with"),
        ("queue purge q --timeout 1s", "--wait"),
    ] {
        redrive(&server, line).failed(2, said);
    }
    redrive(&server, "queue create q --multiplier 0.5").failed(2, "multiplier");
}
