//! Which server is asked, as whom, and what is said when nobody answers as expected.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::thread;

use serde_json::{Value, json};

use crate::run::{bare, command, piped, redrive, run};
use crate::server::Server;

fn contexts(dir: &Path, text: &str) {
    std::fs::create_dir_all(dir.join("redrive")).unwrap();
    std::fs::write(dir.join("redrive/contexts.toml"), text).unwrap();
}

#[tokio::test]
async fn a_context_names_a_server_and_its_token() {
    let (server, other) = (Server::keyed(&[]), Server::start());
    server.create("here", json!({})).await;
    other.create("there", json!({})).await;
    let dir = tempfile::tempdir().unwrap();
    let (url, token, there) = (server.url(""), server.token.clone().unwrap(), other.url(""));
    let text = format!(
        "current = \"prod\"\n[contexts.prod]\nurl = \"{url}\"\ntoken = \"{token}\"\n[contexts.test]\nurl = \"{there}\"\n"
    );
    contexts(dir.path(), &text);
    let ask = |line: &str, variables: &[(&str, &str)]| {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        run(bare(&arguments).env("XDG_CONFIG_HOME", dir.path()).envs(variables.iter().copied()))
    };
    assert_eq!(ask("queue list -o id", &[]).ok(), "here\n");
    assert_eq!(ask("queue list -o id --context test", &[]).ok(), "there\n");
    assert_eq!(ask("queue list -o id", &[("REDRIVE_CONTEXT", "test")]).ok(), "there\n");
    assert_eq!(
        ask("queue list -o id", &[("REDRIVE_URL", &there)]).ok(),
        "there\n",
        "the environment is over it"
    );
    assert_eq!(
        ask("queue list -o id --context test", &[("REDRIVE_URL", &url)]).ok(),
        "there\n",
        "a flag over that"
    );
    let flag = format!("queue list -o id --url {url}");
    ask(&flag, &[]).failed(5, "redrive: ");
    assert_eq!(ask(&format!("{flag} --token {token}"), &[]).ok(), "here\n");
    assert_eq!(ask(&flag, &[("REDRIVE_TOKEN", &token)]).ok(), "here\n");
    ask("queue list --context nowhere", &[]).failed(2, "there is no context `nowhere`");
    contexts(dir.path(), "current = 1");
    ask("queue list", &[]).failed(2, "contexts.toml: line 1, column 11: invalid type");
    assert_eq!(ask("queue list -o id", &[("REDRIVE_URL", &there)]).ok(), "there\n", "it is not looked at");
    ask("queue list --url ftp://x", &[]).failed(2, "must begin with http:// or https://");
    ask("queue list --url http://127.0.0.1:1 --ca nowhere.pem", &[]).failed(1, "ca: nowhere.pem: ");
}

#[test]
fn a_server_behind_tls_is_known_by_its_authority() {
    let dir = tempfile::tempdir().unwrap();
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    std::fs::write(&cert, own.cert.pem()).unwrap();
    std::fs::write(&key, own.signing_key.serialize_pem()).unwrap();
    let server = Server::with(&["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()]);
    let ca = cert.to_str().unwrap();
    assert_eq!(redrive(&server, &format!("queue create orders --ca {ca}")).ok(), "queue orders created\n");
    assert_eq!(run(command(&server, &["queue", "list", "-o", "id"]).env("REDRIVE_CA", ca)).ok(), "orders\n");
    redrive(&server, "queue list").failed(6, "cannot reach https://");
    let key = key.to_str().unwrap();
    redrive(&server, &format!("queue list --ca {key}")).failed(2, "has no certificate in PEM");
    let plain = server.url("").replace("https", "http");
    assert_ne!(run(&mut bare(&["queue", "list", "--url", &plain])).code, 0);
}

/// Somebody who answers every request with the same.
fn stranger(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = [0; 4_096];
            let read = stream.read(&mut asked).unwrap();
            // A token goes to the address that was named and nowhere else, and no proxy is asked.
            assert!(asked[..read].starts_with(b"GET /v1/queues?limit=100 HTTP/1.1\r\n"), "{asked:?}");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    url
}

#[test]
fn who_is_no_redrive_server_is_told_so() {
    for (answer, code, said) in [
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello",
            1,
            "is it a Redrive server?",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}",
            1,
            "answered a page without `queues`",
        ),
        (
            "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            1,
            "answered 404 Not Found: is it a",
        ),
        (
            "HTTP/1.1 301 Moved\r\nlocation: http://elsewhere/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            1,
            "points to http://elsewhere/, which is not followed",
        ),
        (
            "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            6,
            "something before it answers 502",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 50\r\nconnection: close\r\n\r\n{\"queues\":",
            6,
            "did not answer",
        ),
        ("", 6, "did not answer"),
    ] {
        let url = stranger(answer);
        let proxy = [
            ("http_proxy", "http://127.0.0.1:1"),
            ("HTTP_PROXY", "http://127.0.0.1:1"),
            ("all_proxy", "http://127.0.0.1:1"),
        ];
        run(bare(&["queue", "list", "--url", &url]).envs(proxy)).failed(code, said);
    }
    let ran = run(&mut bare(&["queue", "list", "--url", "http://127.0.0.1:1"]));
    let said = "redrive: cannot reach http://127.0.0.1:1/: Connection refused (os error 111)\nredrive: this may work later\n";
    assert_eq!((ran.code, &*ran.err), (6, said));
    let ran = run(&mut bare(&["queue", "list", "--json", "--url", "http://127.0.0.1:1"]));
    let problem: Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!((ran.code, &problem["code"], &problem["advice"]), (6, &json!("UNREACHABLE"), &json!("retry")));
}

#[test]
fn a_server_may_stand_below_a_path() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/queues/", listener.local_addr().unwrap());
    let asking = piped(&mut bare(&["queue", "show", "a.b", "--json", "--url", &url]));
    let (mut stream, _) = listener.accept().unwrap();
    let mut asked = [0; 4_096];
    let read = stream.read(&mut asked).unwrap();
    assert!(asked[..read].starts_with(b"GET /queues/v1/queues/a.b HTTP/1.1\r\n"));
    drop(stream);
    assert_eq!(asking.wait_with_output().unwrap().status.code(), Some(6));
}

#[tokio::test]
async fn an_interrupt_ends_a_wait() {
    let server = Server::start();
    server.create("orders", json!({})).await;
    let waiting = piped(&mut command(&server, &["lease", "orders", "--wait", "1h"]));
    // It waits when the server has its poll.
    while !server
        .get("/metrics")
        .await
        .text
        .lines()
        .any(|line| line.starts_with("redrive_waiting_polls") && line.ends_with(" 1"))
    {
        tokio::task::yield_now().await;
    }
    assert!(Command::new("kill").args(["-INT", &waiting.id().to_string()]).status().unwrap().success());
    let ended = waiting.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), &*ended.stderr), (Some(130), b"redrive: interrupted\n" as &[u8]));
}
