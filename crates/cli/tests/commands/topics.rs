//! `redrive topic`.

use serde_json::{Value, json};

use crate::run::{command, masked, redrive, run};
use crate::server::Server;

#[tokio::test]
async fn topics_are_set_shown_and_forgotten() {
    let server = Server::start();
    assert_eq!(redrive(&server, "topic list").ok(), "PATTERN  DISPATCH  RETAIN  SINCE\n");
    assert_eq!(redrive(&server, "topic list --json").json(), Value::Array(Vec::new()));
    let set = redrive(&server, "topic set orders.** --dispatch sequential --retain 7d").ok();
    assert_eq!(set, "events of orders.** are dispatched sequentially and kept for 7d\n");
    let set = redrive(&server, "topic set orders.** --retain none").ok();
    assert_eq!(set, "events of orders.** are dispatched sequentially and not kept\n", "the rest stays");
    assert_eq!(redrive(&server, "topic set * -o id").ok(), "*\n");
    let list = masked(&redrive(&server, "topic list").ok());
    let expected = "\
PATTERN    DISPATCH     RETAIN  SINCE
*          independent  -       0000-00-00T00:00:00.000Z
orders.**  sequential   -       0000-00-00T00:00:00.000Z
";
    assert_eq!(list, expected);
    let card = masked(&redrive(&server, "topic show orders.**").ok());
    assert!(
        card.starts_with("pattern   orders.**\ndispatch  sequential\nretain    -\nqueue     bus.seq."),
        "{card}"
    );
    assert_eq!(redrive(&server, "topic show orders.** --json").json()["dispatch"], "sequential");
    redrive(&server, "topic show nope").failed(3, "nothing is set for the topics nope");
    redrive(&server, "topic delete *")
        .failed(2, "this would forget what is set for *, with 0 events that wait: say --yes");
    assert_eq!(redrive(&server, "topic delete * --yes").ok(), "nothing is set for * any more\n");
    redrive(&server, "topic delete * --yes").failed(3, "nothing is set for the topics *");
}

#[tokio::test]
async fn events_that_wait_are_counted_before_they_go() {
    let server = Server::start();
    redrive(&server, "queue create mail --max-waiting 1").ok();
    redrive(&server, "enqueue mail first").ok();
    redrive(&server, "topic set orders.* --dispatch sequential").ok();
    redrive(&server, "subscription create mail --pattern orders.* --queue mail").ok();
    // The queue is full, so the event waits for it.
    redrive(&server, "publish orders.created x").ok();
    let would = redrive(&server, "topic delete orders.* --dry-run").ok();
    assert_eq!(would, "would forget what is set for orders.*, with 1 event that wait\n");
    assert_eq!(redrive(&server, "topic delete orders.* --dry-run --json").json(), json!({"matched": 1}));
    redrive(&server, "topic delete orders.* --yes").failed(4, "wait for their handlers");
    redrive(&server, "topic delete orders.* --force --yes").ok();
    assert_eq!(server.get("/v1/topics").await.body["topics"], json!([]));
}

#[tokio::test]
async fn what_cannot_be_meant_or_may_not_be_done_is_refused() {
    let server = Server::start();
    for (line, said) in [
        ("topic set ord* --retain 1d", "stand for whole segments"),
        ("topic set orders --retain 7", "or none for no limit"),
        ("topic set orders --dispatch serial", "possible values: independent, sequential"),
        ("topic set orders --retain 10000d", "retain"),
        ("topic delete orders --yes --dry-run", "cannot be used with"),
    ] {
        redrive(&server, line).failed(2, said);
    }
    let server = Server::keyed(&[]);
    let (_, token) = server.key(&[("manage", "orders*")], json!({})).await;
    let topic = |pattern: &str| {
        run(command(&server, &["topic", "set", pattern, "--retain", "1d"]).env("REDRIVE_TOKEN", &token))
    };
    topic("orders.**").ok();
    topic("**").failed(5, "redrive: ");
}
