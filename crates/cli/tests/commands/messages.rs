//! `redrive message`.

use serde_json::json;

use crate::run::{masked, redrive};
use crate::server::Server;

#[tokio::test]
async fn messages_are_listed_by_what_they_are() {
    let server = Server::with_clock();
    for n in 0..3 {
        let message =
            json!({"body": "x", "type": format!("t{n}"), "fairness_key": "acme", "delay_ms": n * 1_000});
        server.enqueue("orders", message).await;
        server.advance(60_000 * u64::from(n == 1)).await;
    }
    server.lease("orders", json!({"consumer": "me"})).await;
    let table = "\
ID                                    STATE    ATTEMPTS  PRIORITY  TYPE  KEY   CREATED                   VISIBLE
00000000-0000-0000-0000-000000000000  leased          1         5  t0    acme  0000-00-00T00:00:00.000Z  0000-00-00T00:00:00.000Z
00000000-0000-0000-0000-000000000000  ready           0         5  t1    acme  0000-00-00T00:00:00.000Z  0000-00-00T00:00:00.000Z
00000000-0000-0000-0000-000000000000  delayed         0         5  t2    acme  0000-00-00T00:00:00.000Z  0000-00-00T00:00:00.000Z
";
    assert_eq!(masked(&redrive(&server, "message list orders").ok()), table);
    let types = |line: &str| {
        let all = redrive(&server, &format!("message list orders --json {line}")).json();
        all.as_array()
            .unwrap()
            .iter()
            .map(|one| one["type"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(types("--state ready --state delayed"), "t1 t2");
    assert_eq!(types("--type t0 --type t2"), "t0 t2");
    assert_eq!(types("--consumer me"), "t0");
    assert_eq!(types("--key acme --newest-first --limit 2"), "t2 t1");
    assert_eq!(types("--key other"), "");
    assert_eq!(types("--attempts-min 1"), "t0");
    assert_eq!(types("--attempts-max 0 --all"), "t1 t2");
    assert_eq!(types("--created-before 30s"), "t0 t1", "by the server's clock");
    assert_eq!(types("--created-after 30s"), "t2");
    assert_eq!(types("--created-after 2100-01-01T00:00:00Z"), "");
    redrive(&server, "message list orders --created-after 30").failed(2, "has no unit: write 30s");
    redrive(&server, "message list orders --type a,b").failed(2, "must have no comma");
    redrive(&server, "message list orders --state redy").failed(2, "a similar value exists: 'ready'");
    redrive(&server, "message list orders --fingerprint x").failed(2, "fingerprint");
    redrive(&server, "message list nope").failed(3, "there is no queue nope");
}

#[tokio::test]
async fn a_list_goes_over_pages() {
    let server = Server::start();
    let messages: Vec<_> = (0..250).map(|n| json!({"body": n.to_string()})).collect();
    server.post("/v1/queues/orders/messages/batch", json!({"messages": messages})).await;
    let count = |line: &str| redrive(&server, line).ok().lines().count();
    assert_eq!(count("message list orders -o id"), 100);
    assert_eq!(count("message list orders -o id --limit 120"), 120);
    assert_eq!(count("message list orders -o ndjson --all"), 250);
    assert_eq!(count("message list orders --all"), 251);
    let all = redrive(&server, "message list orders --all --json").json();
    assert_eq!((all.as_array().unwrap().len(), &all[249]["body"]), (250, &json!("249")));
    let yaml = redrive(&server, "message list orders --limit 2 -o yaml").ok();
    assert_eq!(yaml.matches("\n  queue: orders\n").count(), 2, "{yaml}");
}

#[tokio::test]
async fn a_message_is_shown_and_says_why_it_waits() {
    let server = Server::with_clock();
    server.create("orders", json!({"retry": {"jitter": "none"}})).await;
    let id = server.enqueue("orders", json!({"body": "a\u{1b}[31mb"})).await;
    let why = redrive(&server, &format!("message why orders {id}")).ok();
    let next = "\n\nNothing keeps it: the next consumer that asks gets it.\n";
    assert_eq!(masked(&why), format!("state     ready\nearliest  0000-00-00T00:00:00.000Z{next}"));
    let leased = server.lease("orders", json!({"consumer": "me"})).await;
    let nack = json!({"receipt": leased[0]["receipt"], "error": "boom\nat line 7"});
    server.post("/v1/leases/nack", nack).await;
    let shown = masked(&redrive(&server, &format!("message show orders {id}")).ok());
    let expected = "\
id            00000000-0000-0000-0000-000000000000
queue         orders
state         delayed
attempts      1
deliveries    1
redrives      0
priority      5
created       0000-00-00T00:00:00.000Z
visible       0000-00-00T00:00:00.000Z
last error    boom\\nat line 7
content type  text/plain; charset=utf-8
body          a\\u{1b}[31mb

ATTEMPT  ENDED                     BY    CONSUMER  DELAY  ERROR
      1  0000-00-00T00:00:00.000Z  nack  me           1s  boom\\nat line 7
";
    assert_eq!(shown, expected);
    let json = redrive(&server, &format!("message show orders {id} --json")).json();
    assert_eq!(json, server.get(&format!("/v1/queues/orders/messages/{id}")).await.body);
    let why = masked(&redrive(&server, &format!("message why orders {id}")).ok());
    let table = "\nWHY      UNTIL                     WHAT IT MEANS\nnot_due  0000-00-00T00:00:00.000Z  its time has not come\n";
    assert!(why.starts_with("state     delayed\n") && why.ends_with(table), "{why}");
    assert_eq!(redrive(&server, &format!("message why orders {id} -o id")).ok(), "not_due\n");
    assert_eq!(
        redrive(&server, &format!("message why orders {id} --json")).json()["obstacles"][0]["kind"],
        "not_due"
    );
    redrive(&server, "message show orders 7").failed(2, "invalid value '7'");
    let unknown = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
    redrive(&server, &format!("message show orders {unknown}")).failed(3, "redrive: ");
    redrive(&server, &format!("message why nope {unknown}")).failed(3, "redrive: ");
}

#[tokio::test]
async fn messages_are_moved_and_discarded_one_by_one_and_by_filter() {
    let server = Server::start();
    server.create("other", json!({})).await;
    let mut ids = Vec::new();
    for n in 0..6 {
        ids.push(server.enqueue("orders", json!({"body": "x", "type": format!("t{}", n % 2)})).await);
    }
    let one = &ids[0];
    let would = format!("would move message {one} of orders to other\n");
    assert_eq!(redrive(&server, &format!("message move orders {one} --to other --dry-run")).ok(), would);
    assert_eq!(server.count("other", "ready").await, 0);
    let moved = redrive(&server, &format!("message move orders {one} --to other")).ok();
    assert_eq!(moved, format!("message {one} moved to other\n"));
    redrive(&server, &format!("message move orders {one} --to other")).failed(3, "redrive: ");
    redrive(&server, "message move orders --to other").failed(2, "say which messages, or --all");
    redrive(&server, &format!("message move orders {one} --type t1 --to other"))
        .failed(2, "cannot be used with");
    let filter = "message move orders --type t1 --to other";
    redrive(&server, filter).failed(2, "this would move 3 messages of orders (type t1) to other: say --yes");
    assert_eq!(
        redrive(&server, &format!("{filter} --dry-run")).ok(),
        "would move 3 messages of orders (type t1) to other\n"
    );
    let moved = redrive(&server, &format!("{filter} --yes --wait --rate 1000/s --json")).json();
    assert_eq!(
        (&moved["applied"], &moved["target"], &moved["rate"]),
        (&json!(3), &json!("other"), &json!(1_000))
    );
    assert_eq!((server.count("orders", "ready").await, server.count("other", "ready").await), (2, 4));

    let one = &ids[2];
    redrive(&server, &format!("message discard orders {one}"))
        .failed(2, &format!("this would discard message {one} of orders, which is ready: say --yes"));
    assert_eq!(server.count("orders", "ready").await, 2);
    assert_eq!(
        redrive(&server, &format!("message discard orders {one} --yes -o id")).ok(),
        format!("{one}\n")
    );
    server.lease("orders", json!({})).await;
    let last = &ids[4];
    redrive(&server, &format!("message discard orders {last} --yes")).failed(4, "redrive: ");
    assert_eq!(
        redrive(&server, &format!("message discard orders {last} --yes --force")).ok(),
        format!("message {last} discarded\n")
    );
    redrive(&server, &format!("message discard orders {last} --yes")).failed(3, "redrive: ");
    redrive(&server, "message discard other --state ready")
        .failed(2, "this would discard 4 messages of other (state ready)");
    redrive(&server, "message discard other --all --yes --wait").ok();
    assert_eq!(server.count("other", "ready").await, 0);
    redrive(&server, "message move orders --all --to other --rate 5").failed(2, "has no unit: write 5/s");
}
