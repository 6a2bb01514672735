//! Receivers that take their time, or that never end.

use std::sync::Arc;

use redrive_bus::webhook::Verdict;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{Duration, interval};

use crate::receiver::{Receiver, read_request};
use crate::sender::{deliver, deliver_within, error, sender};

/// Says `start`, then `again` until the other side has had enough, and tells how many bytes that took.
async fn endless(start: impl Into<String>, again: Vec<u8>) -> (Receiver, mpsc::Receiver<usize>) {
    let (tell, ended) = mpsc::channel(1);
    let said: Arc<(String, Vec<u8>)> = Arc::new((start.into(), again));
    let receiver = Receiver::start("127.0.0.1:0", move |mut stream| {
        let (tell, said) = (tell.clone(), Arc::clone(&said));
        async move {
            if read_request(&mut stream).await.is_none() {
                return;
            }
            let mut written = 0;
            let mut next = said.0.as_bytes();
            while stream.write_all(next).await.is_ok() {
                written += next.len();
                next = &said.1;
            }
            tell.send(written).await.unwrap();
        }
    });
    (receiver.await, ended)
}

/// What the buffers of two sockets hold, and much less than goes through them in a second.
const BUFFERED_BYTES_MAX: usize = 32 * 1024 * 1024;

#[tokio::test]
async fn an_endless_body_is_left_after_its_start() {
    let chunk = [b"1000\r\n".to_vec(), vec![b'x'; 0x1000], b"\r\n".to_vec()].concat();
    let cases = [
        ("transfer-encoding: chunked\r\n", chunk),
        ("content-length: 1000000000000\r\n", vec![b'x'; 0x1000]),
        // Without a length it lasts as long as the connection.
        ("", vec![b'x'; 0x1000]),
    ];
    let webhooks = sender();
    for (header, again) in cases {
        for (status, expected) in [("200 OK", Verdict::Delivered), ("410 Gone", Verdict::Gone)] {
            let (receiver, mut ended) =
                endless(format!("HTTP/1.1 {status}\r\n{header}\r\n"), again.clone()).await;
            let answer = deliver(&webhooks, &receiver.url()).await;
            assert_eq!(answer.verdict, expected, "{header}");
            assert_eq!(answer.capture.response_body, "x".repeat(1_024));
            let written = ended.recv().await.unwrap();
            assert!(written < BUFFERED_BYTES_MAX, "{header}: {written}");
        }
    }
}

#[tokio::test]
async fn endless_headers_are_no_answer() {
    let start = "HTTP/1.1 200 OK\r\nx: ";
    let (receiver, mut ended) = endless(start, vec![b'x'; 0x1000]).await;
    let answer = deliver(&sender(), &receiver.url()).await;
    assert_eq!(error(&answer), "no answer: message head is too large");
    assert!(ended.recv().await.unwrap() < BUFFERED_BYTES_MAX);

    let (receiver, _ended) = endless("HTTP/1.1 200 OK\r\n", b"x: y\r\n".to_vec()).await;
    let answer = deliver(&sender(), &receiver.url()).await;
    assert_eq!(error(&answer), "no answer: message head is too large");
}

#[tokio::test]
async fn many_headers_are_kept_in_part_and_too_many_are_no_answer() {
    let answer = |count: usize| {
        let headers: Vec<String> = (0..count).map(|n| format!("x-{n}: {}\r\n", "v".repeat(200))).collect();
        format!("HTTP/1.1 200 OK\r\n{}content-length: 0\r\n\r\n", headers.concat())
    };
    let (receiver, _seen) = Receiver::saying(answer(99)).await;
    let answered = deliver(&sender(), &receiver.url()).await;
    assert_eq!(answered.verdict, Verdict::Delivered);
    let kept = &answered.capture.response_headers;
    let bytes: usize = kept.iter().map(|(name, value)| name.len() + value.len()).sum();
    assert!(
        kept.len() <= 32 && bytes <= 4 * 1024 && bytes > 3 * 1024,
        "{} headers, {bytes} bytes",
        kept.len()
    );

    let (receiver, _seen) = Receiver::saying(answer(200)).await;
    assert!(error(&deliver(&sender(), &receiver.url()).await).starts_with("no answer: "));
}

/// Tells when it has heard the request, says something, and then nothing more.
async fn silent_after(said: &'static str) -> Receiver {
    let receiver = Receiver::start("127.0.0.1:0", move |mut stream: TcpStream| async move {
        if read_request(&mut stream).await.is_some() {
            stream.write_all(said.as_bytes()).await.unwrap();
            std::future::pending::<()>().await;
        }
    });
    receiver.await
}

#[tokio::test]
async fn an_answer_that_never_comes_is_a_time_out() {
    let webhooks = sender();
    for said in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 100 Continue\r\n\r\n"] {
        let receiver = silent_after(said).await;
        let answer = deliver_within(&webhooks, &receiver.url(), 150).await;
        assert_eq!(error(&answer), "timed out after 150 ms", "{said}");
        assert!(answer.capture.elapsed_ms >= 150, "{}", answer.capture.elapsed_ms);
    }
}

#[tokio::test]
async fn a_body_that_never_ends_does_not_change_what_the_status_said() {
    let webhooks = sender();
    let receiver = silent_after("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await;
    let answer = deliver_within(&webhooks, &receiver.url(), 150).await;
    assert_eq!((answer.verdict, answer.capture.response_body.as_str()), (Verdict::Delivered, "half"));
    let receiver = silent_after("HTTP/1.1 500 No\r\ncontent-length: 10\r\n\r\nhalf").await;
    let answer = deliver_within(&webhooks, &receiver.url(), 150).await;
    assert_eq!(error(&answer), "answered 500: half");
}

#[tokio::test]
async fn a_body_that_never_ends_is_not_waited_for_as_long_as_an_answer() {
    let receiver = Receiver::start("127.0.0.1:0", |mut stream: TcpStream| async move {
        if read_request(&mut stream).await.is_some() {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nhalf").await.unwrap();
            // From here on the time of the test passes by itself, whenever nothing else is left to do.
            tokio::time::pause();
            std::future::pending::<()>().await;
        }
    });
    let receiver = receiver.await;
    let answer = deliver_within(&sender(), &receiver.url(), 3_600_000).await;
    assert_eq!((answer.verdict, answer.capture.response_body.as_str()), (Verdict::Delivered, "half"));
    assert!((5_000..10_000).contains(&answer.capture.elapsed_ms), "{}", answer.capture.elapsed_ms);
}

#[tokio::test]
async fn a_body_that_trickles_has_its_time() {
    let (tell, mut ended) = mpsc::channel(1);
    let receiver = Receiver::start("127.0.0.1:0", move |mut stream: TcpStream| {
        let tell = tell.clone();
        async move {
            if read_request(&mut stream).await.is_none() {
                return;
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            let mut ticks = interval(Duration::from_millis(5));
            while stream.write_all(b".").await.is_ok() {
                ticks.tick().await;
            }
            tell.send(()).await.unwrap();
        }
    });
    let receiver = receiver.await;
    let answer = deliver_within(&sender(), &receiver.url(), 300).await;
    assert_eq!(answer.verdict, Verdict::Delivered);
    assert!(answer.capture.response_body.len() > 1, "{:?}", answer.capture);
    ended.recv().await.unwrap();
}

#[tokio::test]
async fn a_body_with_an_early_end_does_not_change_what_the_status_said() {
    let (receiver, _seen) =
        Receiver::saying("HTTP/1.1 200 OK\r\ncontent-length: 100\r\nconnection: close\r\n\r\nhalf").await;
    let answer = deliver(&sender(), &receiver.url()).await;
    assert_eq!((answer.verdict, answer.capture.response_body.as_str()), (Verdict::Delivered, "half"));
}
