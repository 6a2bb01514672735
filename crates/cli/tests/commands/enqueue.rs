//! `redrive enqueue`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::run::{command, fed, masked, redrive, run};
use crate::server::Server;

async fn only(server: &Server) -> Value {
    let messages = server.get("/v1/queues/orders/messages").await.body["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 1, "{messages}");
    messages[0].clone()
}

#[tokio::test]
async fn a_message_is_enqueued_with_everything_that_can_be_said_of_it() {
    let server = Server::with_clock();
    let line = "enqueue orders hello --type order --source shop --priority 7 --key acme --dedup-key d1 --unique --delay 10m \
                --ttl 1h --lease-timeout 5s --max-attempts 9 --header a=b=c --header x= --content-type text/x";
    let id = redrive(&server, line).ok();
    let message = only(&server).await;
    assert_eq!(id.trim_end(), message["id"]);
    let expected = json!({
        "body": "hello", "type": "order", "source": "shop", "priority": 7, "fairness_key": "acme", "dedup_key": "d1",
        "state": "delayed", "lease_timeout_ms": 5_000, "max_attempts": 9, "content_type": "text/x",
        "headers": {"a": "b=c", "x": ""},
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&message[field], value, "{field}");
    }
    let again = redrive(&server, "enqueue orders other --dedup-key d1 --unique");
    assert_eq!((again.code, &again.out), (0, &id));
    assert_eq!(again.err, "redrive: it was there already: this is the first one's id\n");
    let again = redrive(&server, "enqueue orders other --dedup-key d1 --unique --json -q");
    assert!(again.err.is_empty() && again.json()["duplicate"] == true);
    server.advance(600_000).await;
    assert_eq!(only(&server).await["state"], "ready");
    server.advance(3_000_000).await;
    while only(&server).await["state"] != "dead" {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn bodies_come_from_arguments_files_and_stdin_byte_by_byte() {
    let server = Server::start();
    let file = server.dir.path().join("body");
    let bytes = [0xff, 0, b'a', b'\n'];
    std::fs::write(&file, bytes).unwrap();
    let body = |id: &str| {
        let id = id.trim_end().to_owned();
        command(&server, &["message", "show", "orders", &id, "--body"]).output().unwrap().stdout
    };
    let from_file = redrive(&server, "enqueue orders --file body").ok();
    assert_eq!(body(&from_file), bytes);
    let from_stdin = fed(&server, "enqueue orders --file -", b"grun\n").ok();
    assert_eq!(body(&from_stdin), b"grun\n");
    let json = redrive(&server, r#"enqueue orders --json-body {"n":1.10,"a":12345678901234567890}"#).ok();
    assert_eq!(body(&json), br#"{"n":1.10,"a":12345678901234567890}"#, "as it was written");
    let empty = run(&mut command(&server, &["enqueue", "orders", ""])).ok();
    assert!(body(&empty).is_empty());
    redrive(&server, "enqueue orders").failed(2, "say what: BODY, --file FILE");
    redrive(&server, "enqueue orders --file nowhere").failed(1, "reading nowhere: ");
    redrive(&server, "enqueue orders --json-body {").failed(2, "is no JSON: ");
    redrive(&server, "enqueue orders a --file body").failed(2, "cannot be used with");
    redrive(&server, "enqueue orders a --unique").failed(2, "--dedup-key");
    redrive(&server, "enqueue orders a --priority 10").failed(2, "10 is not in 0..=9");
    redrive(&server, "enqueue orders a --delay 5").failed(2, "has no unit: write 5s");
    redrive(&server, "enqueue orders a --delay 5s --at 5s").failed(2, "cannot be used with");
    redrive(&server, "enqueue orders a --at 2030-13-01").failed(2, "must be a time as RFC 3339 writes it");
    redrive(&server, "enqueue orders a --header b").failed(2, "must be NAME=VALUE");
    redrive(&server, "enqueue orders a --id 7").failed(2, "id");
    std::fs::write(&file, vec![b'x'; 2 << 20]).unwrap();
    redrive(&server, "enqueue orders --file body").failed(2, "the limit is 1048576");
    std::fs::write(&file, vec![b'x'; 17 << 20]).unwrap();
    redrive(&server, "enqueue orders --file body").failed(2, "body: body is larger than 16777216 bytes");
}

#[tokio::test]
async fn lines_come_in_by_the_thousand_as_they_were_written() {
    let server = Server::start();
    let mut lines = String::new();
    for n in 0..2_500 {
        writeln!(lines, "{{\"json\": {{\"n\": {n}.10}}}}").unwrap();
    }
    std::fs::write(server.dir.path().join("lines"), &lines).unwrap();
    let done = redrive(&server, "enqueue orders --ndjson lines");
    assert_eq!((&*done.out, &*done.err), ("2500 enqueued, 0 duplicates, 0 refused\n", ""));
    assert_eq!(server.count("orders", "ready").await, 2_500);
    assert_eq!(server.lease("orders", json!({})).await[0]["body"], "{\"n\": 0.10}");
    let ids =
        fed(&server, "enqueue other --ndjson - -o id", &lines.as_bytes()[..lines.find('\n').unwrap()]).ok();
    assert_eq!(masked(&ids), "00000000-0000-0000-0000-000000000000\n");
    assert_eq!(
        fed(&server, "enqueue other --ndjson --json", b"").json(),
        json!({"enqueued": 0, "duplicates": 0, "refused": 0})
    );
    redrive(&server, "enqueue other --ndjson nowhere").failed(1, "reading nowhere: ");
    redrive(&server, "enqueue other --ndjson lines --type t").failed(2, "cannot be used with");
    redrive(&server, "enqueue other --ndjson lines body").failed(2, "cannot be used with");
}

#[tokio::test]
async fn a_line_that_is_wrong_is_named_and_the_others_come_in() {
    let server = Server::start();
    let lines = "{\"body\":\"a\",\"dedup_key\":\"k\"}\n{\"bdy\":\"b\"}\n\n{\"body\":\"c\",\"priority\":12}\nnope\n\
                 {\"body\":\"d\",\"dedup_key\":\"k\"}\n{\"body\":\"e\",\"type\":\"\\u0001\"}\n\u{feff}\n{\"body\":\"f\"}";
    let ran = fed(&server, "enqueue orders --ndjson", lines.as_bytes());
    assert_eq!((ran.code, &*ran.out), (7, "2 enqueued, 1 duplicates, 5 refused\n"), "{ran:?}");
    for said in [
        "redrive: line 2: unknown field `bdy`",
        "redrive: line 4: priority: must lie between 0 and 9",
        "redrive: line 5: expected ident at column 2",
        "redrive: line 7: type: byte 0 is not allowed",
        "redrive: line 8: expected value at column 1",
        "redrive: 5 of 8 lines failed",
    ] {
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
    }
    assert_eq!(server.count("orders", "ready").await, 2);
    let ran = fed(
        &server,
        "enqueue orders --ndjson -o ndjson",
        b"{\"body\":\"a\"}\n{\"priority\":10}\n{\"body\":\"b\"}\n",
    );
    let seen: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(ran.code, 7);
    assert_eq!(seen.iter().map(|one| one["line"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 3]);
    assert!(seen.iter().all(|one| one["id"].is_string() && one["duplicate"] == false), "{seen:?}");
    // A thousand wrong lines are a thousand complaints, and what stands between them comes in.
    let many = "{\"body\":\"x\"}\n{\"priority\":99}\n".repeat(1_000);
    let ran = fed(&server, "enqueue many --ndjson", many.as_bytes());
    assert_eq!((ran.code, &*ran.out), (7, "1000 enqueued, 0 duplicates, 1000 refused\n"));
    assert_eq!(ran.err.matches("priority: must lie between 0 and 9").count(), 1_000);
    server.create("full", json!({"max_waiting": 1})).await;
    let ran = fed(&server, "enqueue full --ndjson", b"{\"body\":\"a\"}\n{\"body\":\"b\"}\n");
    assert_eq!((ran.code, &*ran.out), (7, "1 enqueued, 0 duplicates, 1 refused\n"));
    assert!(ran.err.contains("line 2: ") && ran.err.contains("(QUEUE_FULL)"), "{ran:?}");
}

#[tokio::test]
async fn an_import_that_cannot_go_on_says_how_far_it_came() {
    let mut server = Server::start();
    server.kill();
    let ran = fed(&server, "enqueue orders --ndjson", b"{\"body\":\"a\"}\n");
    assert_eq!((ran.code, &*ran.out), (6, ""), "{ran:?}");
    assert!(ran.err.contains(
        "redrive: stopped at line 1; 0 enqueued and 0 duplicates before it\nredrive: cannot reach "
    ));
    redrive(&server, "enqueue orders hello").failed(6, "Connection refused");
}
