//! What receivers answer, and what is made of it.

use bytes::Bytes;
use redrive_bus::webhook::{Call, Signed, TOLERANCE, Unverified, Verdict, WebhookConfig, WebhookUrl, verify};
use redrive_core::time::Millis;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

use crate::receiver::{Receiver, read_request};
use crate::sender::{AT, deliver, deliver_body, error, secret, sender};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[tokio::test]
async fn a_receiver_can_see_who_sent_it() {
    let (receiver, mut seen) = Receiver::saying(OK).await;
    let (webhooks, secrets) = (sender(), [secret(b'A'), secret(b'B')]);
    let url = WebhookUrl::parse(&format!("{}?q=1", receiver.url()), webhooks.guard()).unwrap();
    let call = Call {
        url: &url,
        secrets: &secrets,
        id: "msg_1",
        at: AT,
        content_type: "application/cloudevents+json",
        headers: &[("X-Tenant".to_owned(), "seven".to_owned())],
        body: Bytes::from_static(b"\x00\xffbody"),
        timeout: Millis::from_secs(30),
    };
    let answer = webhooks.deliver(call).await;
    assert_eq!(answer.verdict, Verdict::Delivered);

    let request = seen.recv().await.unwrap();
    assert!(request.head.starts_with("POST /hook?q=1 HTTP/1.1\r\n"), "{}", request.head);
    assert_eq!(request.body, b"\x00\xffbody");
    let expected = [
        ("content-type", Some("application/cloudevents+json")),
        ("x-tenant", Some("seven")),
        ("webhook-id", Some("msg_1")),
        ("webhook-timestamp", Some("1794916800")),
        ("content-length", Some("6")),
        ("user-agent", Some(concat!("Redrive/", env!("CARGO_PKG_VERSION")))),
        ("host", Some(&*receiver.addr.to_string())),
        // Nothing is packed, so nothing can blow up when it is unpacked.
        ("accept-encoding", None),
        ("referer", None),
        ("cookie", None),
    ];
    for (name, value) in expected {
        assert_eq!(request.header(name), value, "{name}");
    }
    let signed = Signed {
        id: request.header("webhook-id").unwrap(),
        timestamp: request.header("webhook-timestamp").unwrap(),
        signature: request.header("webhook-signature").unwrap(),
        body: &request.body,
    };
    for one in &secrets {
        assert_eq!(verify(std::slice::from_ref(one), &signed, AT, TOLERANCE), Ok(()));
    }
    assert_eq!(verify(&[secret(b'C')], &signed, AT, TOLERANCE), Err(Unverified::Signature));
}

#[tokio::test]
async fn people_see_what_was_sent_and_what_came_back_but_no_secrets() {
    let answer = format!(
        "HTTP/1.1 201 Created\r\nset-cookie: a=b\r\nx-request-id: 7\r\ncontent-length: 3000\r\n\r\n{}",
        "r".repeat(3_000)
    );
    let (receiver, mut seen) = Receiver::saying(answer).await;
    let webhooks = sender();
    let url = WebhookUrl::parse(&receiver.url(), webhooks.guard()).unwrap();
    let headers = [("authorization".to_owned(), "Bearer hunter2".to_owned())];
    let secrets = [secret(b'A')];
    let call = Call {
        url: &url,
        secrets: &secrets,
        id: "msg_1",
        at: AT,
        content_type: "text/plain",
        headers: &headers,
        body: Bytes::from(vec![b's'; 5_000]),
        timeout: Millis::from_secs(30),
    };
    let debugged = format!("{call:?}");
    let answer = webhooks.deliver(call).await;
    let capture = &answer.capture;
    assert_eq!(answer.verdict, Verdict::Delivered);
    assert_eq!(capture.status, Some(201));
    assert_eq!((capture.request_bytes, capture.request_body.as_str()), (5_000, &*"s".repeat(1_024)));
    assert_eq!(capture.response_body, "r".repeat(1_024));
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert!(capture.response_headers.contains(&pair("x-request-id", "7")));
    assert!(capture.response_headers.contains(&pair("set-cookie", "…")));
    assert!(capture.request_headers.contains(&pair("authorization", "…")));
    assert!(capture.request_headers.iter().all(|(name, _)| name != "webhook-signature"));

    let request = seen.recv().await.unwrap();
    assert_eq!(request.header("authorization"), Some("Bearer hunter2"));
    let signature = request.header("webhook-signature").unwrap();
    let everything = format!("{debugged} {answer:?} {webhooks:?} {:?} {secrets:?}", WebhookConfig::default());
    for secret in ["hunter2", signature, &"A".repeat(32), "ssss"] {
        let everything = if secret == "ssss" { &debugged } else { &everything };
        assert!(!everything.contains(secret), "{secret} in {everything}");
    }
}

#[tokio::test]
async fn each_status_has_its_meaning() {
    let busy = |error: &str, ms: Option<u64>| Verdict::Failed {
        error: error.to_owned(),
        retry_after: ms.map(Millis::new),
    };
    let cases = [
        ("200 OK", "", Verdict::Delivered),
        ("204 No Content", "", Verdict::Delivered),
        ("299 Odd", "", Verdict::Delivered),
        ("410 Gone", "", Verdict::Gone),
        ("429 Slow Down", "retry-after: 120\r\n", busy("answered 429: no: such table", Some(120_000))),
        ("429 Slow Down", "", busy("answered 429: no: such table", None)),
        ("429 Slow Down", "retry-after: later\r\n", busy("answered 429: no: such table", None)),
        ("503 Busy", "retry-after: 1000000\r\n", busy("answered 503: no: such table", Some(86_400_000))),
        (
            "503 Busy",
            "Retry-After: Tue, 17 Nov 2026 12:01:30 GMT\r\n",
            busy("answered 503: no: such table", Some(90_000)),
        ),
        ("503 Busy", "", busy("answered 503: no: such table", None)),
        ("500 Broken", "retry-after: 120\r\n", busy("answered 500: no: such table", None)),
        ("404 Where", "", busy("answered 404: no: such table", None)),
        ("401 Who", "", busy("answered 401: no: such table", None)),
    ];
    let webhooks = sender();
    for (status, headers, expected) in cases {
        let body = if status.starts_with("204") { "" } else { "no:\n such table" };
        let length =
            if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        let answer = format!("HTTP/1.1 {status}\r\n{headers}{length}\r\n{body}");
        let (receiver, _seen) = Receiver::saying(answer).await;
        let first = deliver(&webhooks, &receiver.url()).await;
        assert_eq!(first.verdict, expected, "{status} {headers}");
        assert_eq!(deliver(&webhooks, &receiver.url()).await.verdict, expected, "the same text again");
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let trap = Receiver::trap().await;
    let webhooks = sender();
    for status in [300, 301, 302, 303, 304, 305, 307, 308] {
        let answer = format!(
            "HTTP/1.1 {status} Elsewhere\r\nlocation: {}\r\nrefresh: 0;url={}\r\ncontent-length: 0\r\n\r\n",
            trap.url(),
            trap.url()
        );
        let (receiver, _seen) = Receiver::saying(answer).await;
        let answer = deliver(&webhooks, &receiver.url()).await;
        assert_eq!(error(&answer), format!("answered {status}: redirects are not followed"));
    }
    assert_eq!(trap.connections().await, 0);
    deliver(&webhooks, &trap.url()).await;
    assert_eq!(trap.connections().await, 1, "it would have been seen");
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let long = "x".repeat(60_000);
    let (receiver, mut seen) = Receiver::saying(format!(
        "HTTP/1.1 500 No\r\nset-cookie: a=b\r\ncontent-length: 60000\r\n\r\n{long}"
    ))
    .await;
    let webhooks = sender();
    for _ in 0..5 {
        deliver(&webhooks, &receiver.url()).await;
        assert_eq!(seen.recv().await.unwrap().header("cookie"), None);
        settle().await;
    }
    assert_eq!(receiver.connections().await, 1);
}

/// The connection goes back to its place in a task of its own, which is ready to run by now.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_slow_receiver_delays_nobody_else() {
    let (tell, mut heard) = mpsc::channel(1);
    let slow = Receiver::start("127.0.0.1:0", move |mut stream| {
        let tell = tell.clone();
        async move {
            let request = read_request(&mut stream).await;
            tell.send(request.is_some()).await.unwrap();
            // It is never answered, and the connection stays open.
            std::future::pending::<()>().await;
            drop(stream);
        }
    });
    let slow = slow.await;
    let webhooks = std::sync::Arc::new(sender());
    let waiting = tokio::spawn({
        let (webhooks, url) = (std::sync::Arc::clone(&webhooks), slow.url());
        async move { deliver(&webhooks, &url).await }
    });
    assert_eq!(heard.recv().await, Some(true));

    let (quick, mut seen) = Receiver::saying(OK).await;
    for _ in 0..50 {
        assert_eq!(deliver(&webhooks, &quick.url()).await.verdict, Verdict::Delivered);
        seen.recv().await.unwrap();
    }
    assert!(!waiting.is_finished());
    waiting.abort();
}

#[tokio::test]
async fn a_receiver_that_hangs_up_has_not_got_it() {
    let at_once = Receiver::start("127.0.0.1:0", |stream| async move { drop(stream) }).await;
    let after_some = Receiver::start("127.0.0.1:0", |mut stream| async move {
        let mut some = [0; 100];
        tokio::io::AsyncReadExt::read_exact(&mut stream, &mut some).await.unwrap();
        // What was not read makes the end of the connection a reset.
    });
    let after_some = after_some.await;
    let after_all = Receiver::start("127.0.0.1:0", |mut stream| async move {
        read_request(&mut stream).await.unwrap();
    });
    let after_all = after_all.await;
    let half = Receiver::start("127.0.0.1:0", |mut stream| async move {
        read_request(&mut stream).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-le").await.unwrap();
    });
    let half = half.await;
    let webhooks = sender();
    for receiver in [at_once, after_some, after_all, half] {
        let body = Bytes::from(vec![b'x'; 8 * 1024 * 1024]);
        let answer = deliver_body(&webhooks, &receiver.url(), body, Millis::from_secs(30)).await;
        assert!(error(&answer).starts_with("no answer: "), "{answer:?}");
        assert_eq!(answer.capture.status, None);
        assert!(!error(&answer).contains("hook"), "the URL is not repeated");
    }
}

#[tokio::test]
async fn a_receiver_that_is_not_there_has_not_got_it() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let answer = deliver(&sender(), &format!("http://{gone}/")).await;
    assert_eq!(error(&answer), "could not connect: Connection refused (os error 111)");
}

#[tokio::test]
async fn what_is_not_http_is_no_answer() {
    for said in [
        "HELLO\r\n\r\n",
        "\0\0\0\0",
        "HTTP/9.9 200 OK\r\n\r\n",
        "220 mail ESMTP close\r\n",
        "HTTP/1.1 xyz\r\n\r\n",
    ] {
        let (receiver, _seen) = Receiver::saying(format!("{said}close")).await;
        let answer = deliver(&sender(), &receiver.url()).await;
        assert!(error(&answer).starts_with("no answer: "), "{said}: {answer:?}");
    }
}

#[tokio::test]
async fn a_call_that_takes_our_headers_is_not_sent() {
    let trap = Receiver::trap().await;
    let webhooks = sender();
    let url = WebhookUrl::parse(&trap.url(), webhooks.guard()).unwrap();
    let extra = |name: &str| vec![(name.to_owned(), "1".to_owned())];
    for (id, content_type, headers) in [
        ("msg_1", "text/plain", extra("Webhook-Signature")),
        ("msg_1", "text/plain", extra("host")),
        ("msg_1", "text/plain", extra("Content-Length")),
        ("msg_1", "text/plain", extra("transfer-encoding")),
        ("msg_1", "text/plain", extra("connection")),
        ("msg_1\r\nhost: x", "text/plain", Vec::new()),
        ("msg_1", "text/plain\r\nhost: x", Vec::new()),
    ] {
        let call = Call {
            url: &url,
            secrets: &[],
            id,
            at: AT,
            content_type,
            headers: &headers,
            body: Bytes::new(),
            timeout: Millis::from_secs(30),
        };
        let answer = webhooks.deliver(call).await;
        assert!(error(&answer).starts_with("headers: "), "{answer:?}");
    }
    assert_eq!(trap.connections().await, 0);
}
