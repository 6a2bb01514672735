//! The page: served from the binary, with what browsers are told about it, at the root and below a path.

#![cfg(feature = "ui")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use reqwest::{Method, Response};
use serde_json::json;

use crate::server::{Answer, Server};

/// What a browser that shows what it gets asks for.
const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");

async fn ask(server: &Server, method: Method, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = server.request_as(None, method, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

async fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> Response {
    ask(server, Method::GET, path, headers).await
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
}

/// What the page says that its links are relative to.
async fn base(response: Response) -> String {
    assert_eq!(
        (response.status().as_u16(), header(&response, "content-type")),
        (200, "text/html; charset=utf-8")
    );
    let text = response.text().await.unwrap();
    text.split("<base href=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

/// The files that the page names, as paths below the same.
async fn files(server: &Server) -> Vec<String> {
    let page = get(server, "/", &[]).await.text().await.unwrap();
    let links = page.split('"').filter_map(|text| text.strip_prefix("./"));
    links.map(|link| format!("/{link}")).collect()
}

/// A request as no client would make it.
fn raw(server: &Server, target: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let request =
        format!("GET {target} HTTP/1.1\r\nhost: localhost\r\naccept: */*\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn the_page_is_there_without_a_key_and_keeps_to_itself() {
    let server = Server::keyed(&[]);
    server.create("canary-queue", json!({})).await;
    let page = get(&server, "/", &[]).await;
    let policy = header(&page, "content-security-policy");
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "base-uri 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(policy.split("; ").any(|said| said == part), "{part}: {policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cache-control", "no-cache"),
        ("vary", "accept-encoding, x-forwarded-prefix"),
    ] {
        assert_eq!(header(&page, name), value, "{name}");
        assert_eq!(page.headers().get_all(name).iter().count(), 1, "{name}");
    }
    assert!(header(&page, "permissions-policy").contains("camera=()"));
    let text = page.text().await.unwrap();
    assert!(text.contains("<noscript>") && !text.contains("canary"), "{text}");
    get(&server, "/v1/queues", &[]).await.error_for_status().unwrap_err();
}

#[tokio::test]
async fn every_file_of_the_page_is_kept_for_ever_or_asked_for_by_its_tag() {
    let server = Server::start();
    let files = files(&server).await;
    for kind in [".js", ".css", ".svg"] {
        assert!(files.iter().any(|file| file.ends_with(kind)), "{kind}: {files:?}");
    }
    for path in files.iter().map(String::as_str).chain(["/"]) {
        let file = get(&server, path, &[]).await;
        assert_eq!(file.status(), 200, "{path}");
        let kind = header(&file, "content-type").to_owned();
        let expected = match path.rsplit('.').next().unwrap() {
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        };
        assert_eq!(kind, expected, "{path}");
        let life = header(&file, "cache-control");
        let ever = path.starts_with("/assets/");
        assert_eq!(life, if ever { "public, max-age=31536000, immutable" } else { "no-cache" }, "{path}");
        let tag = header(&file, "etag").to_owned();
        assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() > 10, "{path}: {tag}");
        let length = header(&file, "content-length").to_owned();
        let bytes = file.bytes().await.unwrap();
        assert_eq!(length, bytes.len().to_string(), "{path}");

        let head = ask(&server, Method::HEAD, path, &[]).await;
        assert_eq!((header(&head, "etag"), header(&head, "content-length")), (&*tag, &*length), "{path}");
        assert!(head.bytes().await.unwrap().is_empty(), "{path}");
        for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
            let again = get(&server, path, &[("if-none-match", &known)]).await;
            assert_eq!((again.status().as_u16(), header(&again, "etag")), (304, &*tag), "{path} {known}");
            assert!(!header(&again, "cache-control").is_empty(), "{path}");
            assert!(again.bytes().await.unwrap().is_empty(), "{path}");
        }
        let other = get(&server, path, &[("if-none-match", "\"x\"")]).await;
        assert_eq!(other.bytes().await.unwrap(), bytes, "{path}");
        let posted = Answer::of(ask(&server, Method::POST, path, &[]).await).await;
        posted.refused(405, "METHOD_NOT_ALLOWED");
        assert_eq!(posted.headers["allow"], "GET, HEAD", "{path}");
    }
}

#[tokio::test]
async fn what_is_taken_compressed_comes_compressed() {
    let server = Server::start();
    let files = files(&server).await;
    let script = files.iter().find(|file| file.rsplit('.').next() == Some("js")).unwrap();
    let plain = get(&server, script, &[]).await;
    let (tag, plain) = (header(&plain, "etag").to_owned(), plain.bytes().await.unwrap());
    let mut tags = vec![tag];
    for (accepted, encoding) in [
        ("gzip, deflate, br, zstd", "br"),
        ("gzip", "gzip"),
        ("br;q=0.1, gzip;q=0.2", "gzip"),
        ("br;q=0, *", "gzip"),
        ("deflate", ""),
        ("identity, gzip;q=0.5", ""),
        ("gzip;q=0, br;q=0", ""),
    ] {
        let file = get(&server, script, &[("accept-encoding", accepted)]).await;
        assert_eq!(header(&file, "content-encoding"), encoding, "{accepted}");
        assert_eq!(header(&file, "vary"), "accept-encoding", "{accepted}");
        let tag = header(&file, "etag").to_owned();
        let bytes = file.bytes().await.unwrap();
        assert_eq!(bytes == plain, encoding.is_empty(), "{accepted}");
        assert!(bytes.len() <= plain.len(), "{accepted}");
        tags.push(tag);
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 3, "one for each encoding: {tags:?}");
    let page = get(&server, "/", &[("accept-encoding", "gzip, br")]).await;
    assert_eq!(header(&page, "content-encoding"), "gzip");
}

#[tokio::test]
async fn where_a_browser_asks_the_page_answers_and_an_api_stays_one() {
    let server = Server::start();
    for path in ["/queues/orders", "/dead", "/a/b/c?x=1", "/redrive.toml"] {
        assert_eq!(base(get(&server, path, &[BROWSER]).await).await, "/", "{path}");
        for other in [&[][..], &[("accept", "*/*")], &[("accept", "application/json")]] {
            Answer::of(get(&server, path, other).await).await.refused(404, "NO_SUCH_ROUTE");
        }
        let posted = Answer::of(ask(&server, Method::POST, path, &[BROWSER]).await).await;
        posted.refused(404, "NO_SUCH_ROUTE");
    }
    for path in ["/v1", "/v1/", "/v1/nothing", "/test/nothing", "/healthz/x", "/assets/none.js", "/assets"] {
        Answer::of(get(&server, path, &[BROWSER]).await).await.refused(404, "NO_SUCH_ROUTE");
    }
    for path in ["/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/queues"] {
        let answer = get(&server, path, &[BROWSER]).await;
        assert_eq!(answer.status(), 200, "{path}");
        assert!(!header(&answer, "content-type").starts_with("text/html"), "{path}");
    }
}

#[tokio::test]
async fn no_path_leads_out_of_the_binary() {
    let server = Server::start();
    std::fs::write(server.dir.path().join("canary.txt"), "canary").unwrap();
    for target in [
        "/../canary.txt",
        "/canary.txt",
        "/./canary.txt",
        "/assets/../canary.txt",
        "/assets/%2e%2e/canary.txt",
        "/assets/..%2fcanary.txt",
        "/assets/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/..%5ccanary.txt",
        "/assets//etc/passwd",
        "//etc/passwd",
        "/assets/app.js%00.txt",
        "/.source-hash",
        "/index.html/../../canary.txt",
        "/assets/",
        "/assets",
        "/%",
        "/%ff%fe",
        "http://localhost/../canary.txt",
    ] {
        let answer = raw(&server, target);
        assert!(
            answer.starts_with("HTTP/1.1 404 ") || answer.starts_with("HTTP/1.1 400 "),
            "{target}: {answer}"
        );
        assert!(!answer.contains("canary\r") && !answer.contains("root:"), "{target}: {answer}");
    }
}

#[tokio::test]
async fn below_a_path_everything_is_there_and_probes_are_where_they_were() {
    let server = Server::with(&["--base-path", "/ops/redrive/"]);
    assert!(server.url("/").ends_with("/ops/redrive/"), "it says where it is: {}", server.url("/"));
    assert_eq!(base(get(&server, "/", &[]).await).await, "/ops/redrive/");
    assert_eq!(base(get(&server, "/queues/orders", &[BROWSER]).await).await, "/ops/redrive/");
    for file in files(&server).await {
        assert_eq!(get(&server, &file, &[]).await.status(), 200, "{file}");
    }
    server.create("orders", json!({})).await;
    server.enqueue("orders", json!({"body": "x"})).await;
    assert_eq!(server.count("orders", "ready").await, 1);
    let nothing = server.get("/v1/nothing").await;
    nothing.refused(404, "NO_SUCH_ROUTE");
    assert_eq!(nothing.body["detail"], "there is nothing at /ops/redrive/v1/nothing");

    let root = format!("http://{}", server.address());
    for (path, status) in [
        ("/healthz", 200),
        ("/readyz", 200),
        ("/metrics", 200),
        ("/openapi.json", 404),
        ("/v1/queues", 404),
        ("/ops", 404),
        ("/ops/redrivex/v1/queues", 404),
        ("/ops/redrive/v1/queues", 200),
    ] {
        let answer = server.client.get(format!("{root}{path}")).send().await.unwrap();
        assert_eq!(answer.status(), status, "{path}");
    }
    // Followed as a browser does, from where it came.
    for path in ["/", "/ops/redrive"] {
        let page = server.client.get(format!("{root}{path}")).send().await.unwrap();
        assert_eq!(page.url().path(), "/ops/redrive/", "{path}");
        assert_eq!(base(page).await, "/ops/redrive/");
    }
    let listed = Command::new(env!("CARGO_BIN_EXE_redrive"))
        .args(["queue", "list", "-o", "id", "--url", &server.url("")])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&listed.stdout), "orders\n", "the command line finds it, too");
}

#[tokio::test]
async fn grpc_stays_where_it_is_below_a_path() {
    let server = Server::with(&["--base-path", "/redrive"]);
    let channel = format!("http://{}", server.address());
    let mut client = redrive_wire::v1::redrive_client::RedriveClient::connect(channel).await.unwrap();
    client.list_queues(redrive_wire::v1::ListQueuesRequest::default()).await.unwrap();
}

#[tokio::test]
async fn a_proxy_that_takes_a_path_away_can_say_so_and_nobody_can_say_more() {
    let server = Server::start();
    let through = async |prefix: &str| base(get(&server, "/", &[("x-forwarded-prefix", prefix)]).await).await;
    assert_eq!(through("/queue").await, "/queue/");
    assert_eq!(through("/a/b-c/d.e~f_1/").await, "/a/b-c/d.e~f_1/");
    let long = format!("/{}", "x".repeat(200));
    for hostile in [
        "queue",
        "//evil.example",
        "/\"><script>alert(1)</script>",
        "/a\"onload=\"x",
        "/'x",
        "https://evil.example/",
        "javascript:alert(1)",
        "/..",
        "/a/../b",
        "/a//b",
        "/%22",
        "/a b",
        "/a\\b",
        "/a, /b",
        "/",
        "",
        &long,
    ] {
        assert_eq!(through(hostile).await, "/", "{hostile}");
    }
    let twice = [("x-forwarded-prefix", "/a"), ("x-forwarded-prefix", "/a")];
    assert_eq!(base(get(&server, "/", &twice).await).await, "/");
    let queues = get(&server, "/v1/queues", &[("x-forwarded-prefix", "/queue")]).await;
    assert_eq!(queues.status(), 200, "it changes nothing but the links");
    let tag = async |headers: &[(&str, &str)]| header(&get(&server, "/", headers).await, "etag").to_owned();
    assert_ne!(tag(&[]).await, tag(&twice[..1]).await, "another page has another tag");
}

#[test]
fn a_base_path_that_is_none_stops_the_start() {
    let dir = tempfile::tempdir().unwrap();
    for path in ["redrive", "/a/../b", "/a b", "/metrics"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
        let output = command
            .args(["serve", "--listen", "127.0.0.1:0", "--base-path", path])
            .current_dir(dir.path())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{path}: {said}");
        assert!(said.contains(&format!("--base-path: base_path: `{path}` must")), "{said}");
    }
}
