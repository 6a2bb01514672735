//! The port: what browsers are told, for whom the server answers, how many may connect, and where it may listen.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use redrive_wire::v1;
use redrive_wire::v1::redrive_client::RedriveClient;
use reqwest::Method;
use reqwest::header::HeaderMap;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tonic::transport::Endpoint;

use crate::server::{Answer, Server};

/// What keeps a browser from doing anything with an answer.
const FOR_BROWSERS: [(&str, &str); 5] = [
    ("x-content-type-options", "nosniff"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// A server with this configuration.
fn configured(config: &str) -> Server {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), config).unwrap();
    Server::with(&["--config", file.path().to_str().unwrap()])
}

fn keeps_browsers_out(headers: &HeaderMap, what: &str) {
    for (name, value) in FOR_BROWSERS {
        let found: Vec<_> = headers.get_all(name).iter().collect();
        assert_eq!(found, [value], "{name} of {what}");
    }
    let cors = headers.keys().find(|name| name.as_str().starts_with("access-control-"));
    assert_eq!(cors, None, "{what}");
}

#[tokio::test]
async fn every_answer_tells_browsers_to_do_nothing_with_it() {
    let server = Server::start();
    for (method, path, status) in [
        (Method::GET, "/healthz", 200),
        (Method::HEAD, "/healthz", 200),
        (Method::GET, "/metrics", 200),
        (Method::GET, "/openapi.json", 200),
        (Method::GET, "/v1/events", 200),
        (Method::GET, "/v1/nothing", 404),
        (Method::GET, "/v1/queues/none", 404),
        (Method::PATCH, "/v1/queues", 405),
        (Method::OPTIONS, "/v1/queues", 405),
        (Method::GET, "/v1/queues/a%20b", 400),
        (Method::POST, "/v1/queues", 400),
    ] {
        let what = format!("{method} {path}");
        let request = server.request(method, path).header("origin", server.url(""));
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), status, "{what}");
        keeps_browsers_out(answer.headers(), &what);
    }
    for (name, value, status) in [
        ("origin", "http://evil.example", 403),
        ("host", "evil.example", 421),
        ("host", "a b", 400),
        ("content-encoding", "gzip", 415),
    ] {
        let request = server.request(Method::POST, "/v1/queues").header(name, value);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), status, "{name}: {value}");
        keeps_browsers_out(answer.headers(), value);
    }
}

#[tokio::test]
async fn a_page_of_another_origin_changes_nothing() {
    let server = Server::start();
    let post = async |headers: &[(&str, &str)]| {
        let mut request = server.request(Method::POST, "/v1/queues/orders/messages").json(&json!({}));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::of(request.send().await.unwrap()).await
    };
    let own = &*server.url("");
    for headers in [
        &[("origin", "http://evil.example")][..],
        &[("origin", "null")],
        &[("origin", "http://127.0.0.1")],
        &[("origin", "http://localhost:1"), ("cookie", "session=1")],
        &[("sec-fetch-site", "cross-site")],
        &[("origin", own), ("sec-fetch-site", "cross-site")],
    ] {
        post(headers).await.refused(403, "CROSS_ORIGIN");
    }
    assert_eq!(server.get("/v1/queues/orders").await.status, 404, "nothing was half done");
    for headers in [&[][..], &[("origin", own)], &[("origin", own), ("sec-fetch-site", "same-origin")]] {
        assert_eq!(post(headers).await.status, 201, "{headers:?}");
    }
}

#[tokio::test]
async fn without_keys_it_answers_to_addresses_localhost_and_the_names_it_was_given() {
    let server = configured("allowed_hosts = [\"queue.internal\"]\n");
    let get = async |host: &str| {
        Answer::of(server.request(Method::GET, "/healthz").header("host", host).send().await.unwrap()).await
    };
    for host in ["localhost", "127.0.0.1:1", "[::1]:7400", "Queue.Internal:7400"] {
        assert_eq!(get(host).await.status, 200, "{host}");
    }
    for host in ["evil.example", "evil.example:7400", "localhost.evil.example"] {
        get(host).await.refused(421, "WRONG_HOST");
    }
    for hosts in
        ["", "host: localhost\r\nhost: localhost\r\n", "host: a b\r\n", "host: \r\n", "host: localhost:x\r\n"]
    {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let request = format!("GET /healthz HTTP/1.1\r\n{hosts}connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 400 ") && answer.contains("INVALID_HOST"),
            "{hosts:?}: {answer}"
        );
    }
    for (name, taken) in [("localhost", true), ("evil.example", false)] {
        let endpoint = Endpoint::from_shared(server.url("")).unwrap();
        let endpoint = endpoint.origin(format!("http://{name}").parse().unwrap());
        let mut client = RedriveClient::new(endpoint.connect().await.unwrap());
        let answer = client.list_queues(v1::ListQueuesRequest::default()).await;
        assert_eq!(answer.is_ok(), taken, "{name}, over gRPC: {answer:?}");
    }
}

#[tokio::test]
async fn what_is_compressed_is_refused_before_it_is_read() {
    let server = Server::start();
    for (path, kind) in [("messages", "application/json"), ("messages/import", "application/x-ndjson")] {
        for encoding in ["gzip", "deflate", "br", "zstd", "identity, gzip"] {
            let request = server
                .request(Method::POST, &format!("/v1/queues/orders/{path}"))
                .header("content-type", kind)
                .header("content-encoding", encoding)
                .body("{}");
            Answer::of(request.send().await.unwrap()).await.refused(415, "UNSUPPORTED_ENCODING");
        }
    }
    let request =
        server.request(Method::POST, "/v1/queues/orders/messages").header("content-encoding", "identity");
    assert_eq!(request.json(&json!({})).send().await.unwrap().status(), 201);
}

/// A connection that is kept and used again and again.
struct Kept(tokio::net::TcpStream);

impl Kept {
    /// From an address of this machine.
    async fn from(address: &str, server: &Server) -> Self {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(format!("{address}:0").parse().unwrap()).unwrap();
        Self(socket.connect(server.address().parse().unwrap()).await.unwrap())
    }

    /// What is answered, or nothing where the connection was closed.
    async fn get(&mut self, path: &str, end: &str) -> Option<String> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        self.0.write_all(request.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        while !answer.ends_with(end.as_bytes()) {
            if self.0.read_buf(&mut answer).await.ok()? == 0 {
                return None;
            }
        }
        Some(String::from_utf8(answer).unwrap())
    }

    async fn is_served(&mut self) -> bool {
        self.get("/healthz", "ok\n").await.is_some()
    }
}

/// Connects until there is room again.
async fn connect_when_there_is_room(server: &Server) -> Kept {
    loop {
        let mut kept = Kept::from("127.0.0.1", server).await;
        if kept.is_served().await {
            return kept;
        }
    }
}

#[tokio::test]
async fn one_connection_too_many_is_closed_and_the_others_go_on() {
    let server = configured("connections_max = 3\n");
    let mut open = Vec::new();
    for address in ["127.0.0.1", "127.0.0.1", "127.0.0.2"] {
        let mut kept = Kept::from(address, &server).await;
        assert!(kept.is_served().await);
        open.push(kept);
    }
    for address in ["127.0.0.1", "127.0.0.3"] {
        assert!(!Kept::from(address, &server).await.is_served().await, "{address}");
    }
    for kept in &mut open {
        assert!(kept.is_served().await);
    }
    let metrics = open[0].get("/metrics", "# EOF\n").await.unwrap();
    for line in [
        "redrive_connections 3\n",
        "redrive_connections_accepted_total 3\n",
        "redrive_connections_refused_total{limit=\"all\"} 2\n",
        "redrive_connections_refused_total{limit=\"address\"} 0\n",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
    open.pop();
    connect_when_there_is_room(&server).await;
}

#[tokio::test]
async fn one_address_cannot_take_all_connections() {
    let server = configured("connections_per_address_max = 2\n");
    let mut greedy = Vec::new();
    for _ in 0..2 {
        let mut kept = Kept::from("127.0.0.1", &server).await;
        assert!(kept.is_served().await);
        greedy.push(kept);
    }
    assert!(!Kept::from("127.0.0.1", &server).await.is_served().await);
    let mut other = Kept::from("127.0.0.2", &server).await;
    let metrics = other.get("/metrics", "# EOF\n").await.unwrap();
    assert!(metrics.contains("redrive_connections_refused_total{limit=\"address\"} 1\n"), "{metrics}");
    for kept in &mut greedy {
        assert!(kept.is_served().await);
    }
    greedy.pop();
    connect_when_there_is_room(&server).await;
}

#[tokio::test]
async fn a_system_that_has_no_file_left_is_waited_out() {
    let server = Server::start();
    let pid = Pid::from_raw(server.pid().try_into().unwrap());
    let files = std::fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count() as u64;
    let limit = Rlimit { current: Some(files + 3), ..getrlimit(Resource::Nofile) };
    prlimit(pid, Resource::Nofile, limit).unwrap();
    let held: Vec<TcpStream> = (0..10).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    server.logged("no connection can be accepted", 1).await;
    drop(held);
    assert_eq!(server.get("/healthz").await.status, 200, "it goes on when there are files again");
}

#[tokio::test]
async fn an_address_that_others_can_reach_needs_more_than_a_word() {
    let dir = tempfile::tempdir().unwrap();
    for flags in [&[][..], &["--insecure-without-tls"], &["--insecure-without-keys"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
        let output =
            command.args(["serve", "--listen", "0.0.0.0:0"]).args(flags).current_dir(dir.path()).output();
        let output = output.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{flags:?}: {said}");
        assert!(
            said.contains("--insecure-without-tls") && said.contains("--insecure-without-keys"),
            "{said}"
        );
    }
}
