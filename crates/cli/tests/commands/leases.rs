//! `redrive lease` and what becomes of leases.

use serde_json::json;

use crate::run::{fed, masked, redrive};
use crate::server::Server;

#[tokio::test]
async fn work_is_taken_and_settled() {
    let server = Server::with_clock();
    server.create("orders", json!({"retry": {"jitter": "none"}})).await;
    server.enqueue("orders", json!({"body": "hello", "type": "t"})).await;
    let shown = redrive(&server, "lease orders --consumer me --lease 1m").ok();
    let (before, receipt) = shown.trim_end().rsplit_once(' ').unwrap();
    let expected = "\
id             00000000-0000-0000-0000-000000000000
attempts       1
priority       5
type           t
fencing token  281474976710657
deadline       0000-00-00T00:00:00.000Z
content type   text/plain; charset=utf-8
body           hello
receipt       ";
    assert_eq!(masked(before), expected);
    let extended = redrive(&server, &format!("extend {receipt} --lease 2m")).ok();
    assert_eq!(masked(&extended), "leased until 0000-00-00T00:00:00.000Z\n");
    let nacked = redrive(&server, &format!("nack {receipt} --error boom")).ok();
    assert_eq!(masked(&nacked), "tried again in 1s, at 0000-00-00T00:00:00.000Z (backoff)\n");
    redrive(&server, &format!("ack {receipt}"))
        .failed(4, "this lease of the message is not current any more");
    redrive(&server, "lease orders").failed(8, "redrive: nothing is ready in orders");
    server.advance(1_000).await;
    redrive(&server, "lease orders --lane fresh").failed(8, "nothing is ready");
    redrive(&server, "lease orders --type other").failed(8, "nothing is ready");
    let receipt = redrive(&server, "lease orders --lane retry --type t -o id").ok();
    let exact = redrive(&server, &format!("nack {} --delay 10s --exact --json", receipt.trim_end())).json();
    assert_eq!((&exact["delay_ms"], &exact["delay_rule"]), (&json!(10_000), &json!("exactly")));
    server.advance(10_000).await;
    let receipt = redrive(&server, "lease orders -o id").ok();
    let released = redrive(&server, &format!("release {}", receipt.trim_end())).ok();
    assert_eq!(masked(&released), "released, ready from 0000-00-00T00:00:00.000Z on\n");
    let receipt = redrive(&server, "lease orders -o id").ok();
    assert_eq!(
        redrive(&server, &format!("bury {} --error never", receipt.trim_end())).ok(),
        "dead (buried)\n"
    );
    redrive(&server, &format!("bury {}", receipt.trim_end())).failed(4, "not current");
    let id = server.enqueue("orders", json!({"body": "x"})).await;
    let leased = redrive(&server, "lease orders --json").json();
    assert_eq!((&leased[0]["id"], leased.as_array().unwrap().len()), (&json!(id), 1));
    let receipt = leased[0]["receipt"].as_str().unwrap().to_owned();
    assert_eq!(redrive(&server, &format!("ack {receipt}")).ok(), "acked\n");
    redrive(&server, &format!("ack {receipt}")).failed(3, "the message is not there, or was settled before");
    redrive(&server, "ack nonsense").failed(2, "not a receipt of this store");
}

#[tokio::test]
async fn many_receipts_are_settled_each_for_itself() {
    let server = Server::start();
    for n in 0..5 {
        server.enqueue("orders", json!({"body": n.to_string()})).await;
    }
    let table = masked(&redrive(&server, "lease orders --limit 1000 --consumer a").ok());
    let head = "ID                                    ATTEMPTS  DEADLINE                  BODY  RECEIPT\n\
                00000000-0000-0000-0000-000000000000         1  0000-00-00T00:00:00.000Z  0     ";
    assert!(table.starts_with(head), "{table}");
    let receipts: Vec<&str> = table.lines().skip(1).map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(receipts.len(), 5);
    let both = redrive(&server, &format!("ack {} {}", receipts[0], receipts[1])).ok();
    assert_eq!(both, "RESULT  OUTCOME\nok      -\nok      -\n");
    let stdin = format!("\n{}\nnonsense\n{}\n", receipts[0], receipts[2]);
    let some = fed(&server, "ack -", stdin.as_bytes());
    assert_eq!(
        (some.code, &*some.out),
        (7, "RESULT  OUTCOME\nfailed  NOT_FOUND\nfailed  INVALID_RECEIPT\nok      -\n")
    );
    assert_eq!(some.err, "redrive: 2 of 3 receipts failed\n");
    let nacked = fed(&server, "nack - --json", format!("{}\n{}", receipts[3], receipts[2]).as_bytes());
    assert_eq!(nacked.code, 7);
    let results: serde_json::Value = serde_json::from_str(&nacked.out).unwrap();
    assert_eq!(
        (&results[0]["outcome"]["state"], &results[1]["code"]),
        (&json!("delayed"), &json!("NOT_FOUND"))
    );
    assert_eq!(serde_json::from_str::<serde_json::Value>(&nacked.err).unwrap()["code"], "PARTIAL");
    fed(&server, "ack -", b"\n \n").failed(2, "there is no receipt on stdin");
    let rest = fed(&server, "release -", format!("{}\n", receipts[4]).as_bytes()).ok();
    assert!(rest.starts_with("released, ready from "), "{rest}");
}

#[tokio::test]
async fn who_waits_is_woken_or_told_that_nothing_came() {
    let server = Server::start();
    server.create("orders", json!({})).await;
    redrive(&server, "lease orders --wait 50ms").failed(8, "nothing was ready in orders within 50ms");
    let problem = redrive(&server, "lease orders --json");
    let problem: serde_json::Value = serde_json::from_str(&problem.err).unwrap();
    assert_eq!((&problem["code"], &problem["advice"]), (&json!("TIMED_OUT"), &json!("retry")));
    let waiting = crate::run::piped(&mut crate::run::command(
        &server,
        &["lease", "orders", "--wait", "10m", "-o", "id"],
    ));
    let id = server.enqueue("orders", json!({"body": "x"})).await;
    let ended = waiting.wait_with_output().unwrap();
    assert!(ended.status.success() && !ended.stdout.is_empty(), "{ended:?}");
    assert_eq!(server.get(&format!("/v1/queues/orders/messages/{id}")).await.body["state"], "leased");
    for (line, said) in [
        ("lease nope", "there is no queue nope"),
        ("nack x --exact", "--delay"),
        ("nack x --delay 5", "has no unit: write 5s"),
        ("lease orders --limit 1001", "1001 is not in 1..=1000"),
        ("lease orders --lane slow", "[possible values: fresh, retry]"),
        ("ack", "<RECEIPT>..."),
    ] {
        let code = if line == "lease nope" { 3 } else { 2 };
        redrive(&server, line).failed(code, said);
    }
}
