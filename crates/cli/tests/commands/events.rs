//! `redrive events`.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::run::{bare, command, masked, piped, redrive, run};
use crate::server::Server;

#[tokio::test]
async fn events_are_told_as_they_happen() {
    let server = Server::start();
    server.create("other", json!({})).await;
    server.create("orders", json!({})).await;
    let mut tail =
        piped(&mut command(&server, &["events", "--queue", "orders", "--count", "2", "--after", "0"]));
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
    let created = masked(&lines.next().unwrap().unwrap());
    assert_eq!(created, "     2  0000-00-00T00:00:00.000Z  queue        orders  created by operator");
    server.enqueue("orders", json!({"body": "x"})).await;
    let enqueued = masked(&lines.next().unwrap().unwrap());
    assert_eq!(enqueued, "     3  0000-00-00T00:00:00.000Z  enqueue      orders  1 message by producer");
    assert!(tail.wait().unwrap().success() && lines.next().is_none());
    let json = redrive(&server, "events --after 1 --count 1 --json").json();
    assert_eq!(
        (&json["id"], &json["type"], &json["payload"]["action"]),
        (&json!(2), &json!("queue"), &json!("created"))
    );
    assert_eq!(redrive(&server, "events --after 0 --count 3 -o id").ok(), "1\n2\n3\n");
    redrive(&server, "events --count 0").failed(2, "0 is not in 1..");
    redrive(&server, "events --after x").failed(2, "invalid value 'x'");
    redrive(&server, "events --queue a/b").failed(2, "byte 1 is not allowed");
}

/// Takes a request, answers it, and gives what was asked.
fn answer(listener: &TcpListener, text: &str) -> String {
    use std::io::Write;
    let (mut stream, _) = listener.accept().unwrap();
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        asked.push(byte[0]);
    }
    stream.write_all(text.as_bytes()).unwrap();
    String::from_utf8(asked).unwrap().to_ascii_lowercase()
}

#[test]
fn who_is_cut_off_comes_back_where_it_was() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let tail = piped(&mut bare(&["events", "--count", "2", "--json", "--url", &url]));
    let event = |id: u64| {
        let payload = json!({"queue": "q", "count": 1, "dlq_count": 0, "triggered_by": "producer"});
        let data = json!({"type": "ack", "timestamp": 0, "payload": payload});
        format!("id: {id}\nevent: ack\ndata: {data}\n\n")
    };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\nretry: 1\n\n";
    let first = answer(&listener, &format!("{head}{}id: 8\ndata: half of an ev", event(7)));
    assert!(first.starts_with("get /v1/events ") && !first.contains("last-event-id"), "{first}");
    // A server that starts is not there for a while.
    let away = answer(
        &listener,
        "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    );
    assert!(away.contains("last-event-id: 7\r\n"), "{away}");
    let lagged = "id: 9\nevent: lagged\ndata: {\"after\":9}\n\n";
    let second = answer(&listener, &format!("{head}{lagged}{}", event(10)));
    assert!(second.contains("last-event-id: 7\r\n"), "{second}");
    let ended = tail.wait_with_output().unwrap();
    let lines = String::from_utf8(ended.stdout).unwrap();
    let seen: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<(&Value, &Value)> = seen.iter().map(|one| (&one["id"], &one["type"])).collect();
    let (ack, lagged) = (json!("ack"), json!("lagged"));
    assert_eq!(told, [(&json!(7), &ack), (&json!(9), &lagged), (&json!(10), &ack)], "{lines}");
    assert!(ended.status.success());
}

#[test]
fn who_is_not_let_in_does_not_come_back() {
    let server = Server::keyed(&[]);
    run(command(&server, &["events"]).env_remove("REDRIVE_TOKEN")).failed(5, "redrive: ");
    run(&mut bare(&["events", "--url", "http://127.0.0.1:1"])).failed(6, "cannot reach http://127.0.0.1:1/");
}
