//! One connection, from where its protocol is found out to its end.
//!
//! Protocols are told apart by the first bytes, and each has its own future: a connection is then as large as its
//! protocol needs, not as large as the largest. Ten thousand consumers that wait are ten thousand of these.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use redrive_broker::pause;
use redrive_core::time::Millis;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::activity::Activity;
use super::connections::Open;
use super::front::Front;
use super::greeted::{Greeted, greet};
use super::late::Late;

/// The largest head of a request, of HTTP/1 with its first line. It has a hundred headers at most, which is hyper's own
/// limit and costs nothing as long as nobody sets it.
const HEAD_BYTES_MAX: u32 = 64 << 10;
/// Requests under way at the same time on one HTTP/2 connection.
const STREAMS_MAX: u32 = 256;
/// Streams that a client reset before they were looked at, and those that had to be reset because the client broke a rule:
/// beyond these the connection ends. Who opens streams only to reset them makes the server work for nothing.
const RESET_STREAMS_MAX: usize = 20;
const WRONG_STREAMS_MAX: usize = 256;
/// How much may be under way to the server on one HTTP/2 stream, and on all streams of a connection: a batch should not
/// have to wait for the server to say that it may go on.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
/// The largest piece of an HTTP/2 stream: each is a call of the system.
const FRAME_BYTES_MAX: u32 = 256 << 10;
/// How often a client on HTTP/2 is asked whether it is still there, and how long it may take to answer.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIME_MAX: Duration = Duration::from_secs(20);
/// How often it is looked whether a connection of HTTP/2 is idle: one that is so for the whole time in between is ended.
const IDLE_CHECK: Millis = Millis::from_secs(60);

/// The beginning of a connection, up to where its protocol is known.
pub(super) async fn connection<S>(stream: S, front: Front, open: Open, mut ending: watch::Receiver<()>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let greeted = tokio::select! {
        greeted = greet(stream, Arc::clone(front.activity())) => greeted,
        _ = ending.changed() => return,
    };
    // Whoever says nothing in time, or hangs up, wants nothing.
    let Ok((stream, is_http2, first)) = greeted else { return };
    // A task of its own, which is no larger than what is left to do.
    if is_http2 {
        tokio::spawn(serve_http2(stream, front, open, ending));
    } else {
        let late = Late::new(Arc::clone(front.activity()), first);
        tokio::spawn(serve_http1(stream, front, late, open, ending));
    }
}

fn ended(served: hyper::Result<()>) {
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended badly");
    }
}

/// The connection is in a box, here and below: a future that moves a large value in and pins it has room for it twice.
fn serve_http1<S>(
    stream: Greeted<S>,
    front: Front,
    mut late: Late,
    open: Open,
    mut ending: watch::Receiver<()>,
) -> impl Future<Output = ()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    // hyper would count the time before the first byte of a head, too.
    builder.header_read_timeout(None).max_header_size(HEAD_BYTES_MAX as usize);
    let mut served = Box::pin(builder.serve_connection(TokioIo::new(stream), front));
    async move {
        let _open = open;
        tokio::select! {
            // In this order: whether a client is late depends on what just came of it.
            biased;
            done = served.as_mut() => return ended(done),
            () = &mut late => return,
            _ = ending.changed() => served.as_mut().graceful_shutdown(),
        }
        tokio::select! {
            biased;
            done = served => ended(done),
            () = late => {}
        }
    }
}

fn serve_http2<S>(
    stream: Greeted<S>,
    front: Front,
    open: Open,
    mut ending: watch::Receiver<()>,
) -> impl Future<Output = ()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES_MAX)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX)
        .max_pending_accept_reset_streams(RESET_STREAMS_MAX)
        .max_local_error_reset_streams(WRONG_STREAMS_MAX)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE_TIME_MAX);
    let activity = Arc::clone(front.activity());
    let mut served = Box::pin(builder.serve_connection(TokioIo::new(stream), front));
    async move {
        let _open = open;
        tokio::select! {
            done = served.as_mut() => return ended(done),
            _ = ending.changed() => {}
            () = idle(&activity) => {}
        }
        served.as_mut().graceful_shutdown();
        ended(served.await);
    }
}

/// Done when no request was under way for a while. A head that never becomes whole is no request.
async fn idle(activity: &Activity) {
    loop {
        let begun = activity.begun();
        let was_busy = activity.is_busy();
        pause(IDLE_CHECK).await;
        if !was_busy && !activity.is_busy() && activity.begun() == begun {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::Router;
    use axum::body::{Body, Bytes};
    use axum::extract::rejection::BytesRejection;
    use axum::http::Request;
    use axum::response::{IntoResponse, Response};
    use axum::routing::{get, post};
    use futures::StreamExt as _;
    use http_body_util::{BodyExt as _, Empty};
    use hyper::client::conn::http2 as client;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
    use tokio::time::Instant;

    use super::super::connections::{ConnectionLimits, Connections};
    use super::super::front::Rules;
    use super::*;
    use crate::http::broken;

    const HOUR: Millis = Millis::from_secs(3_600);

    /// The end of a connection at which the client is.
    struct Client {
        stream: DuplexStream,
        ending: watch::Sender<()>,
        connected: Instant,
    }

    async fn later() -> &'static str {
        pause(HOUR).await;
        "later"
    }

    /// A word every fifteen seconds, for an hour.
    async fn words() -> Body {
        let words = futures::stream::iter(0..240).then(|_| async {
            pause(Millis::from_secs(15)).await;
            Ok::<_, Infallible>(Bytes::from_static(b"word "))
        });
        Body::from_stream(words)
    }

    async fn take(body: Result<Bytes, BytesRejection>) -> Response {
        body.map_err(|error| broken(&error)).map(|body| body.len().to_string()).into_response()
    }

    fn connect() -> Client {
        let app = Router::new()
            .route("/", get(async || "now"))
            .route("/later", get(later))
            .route("/words", get(words))
            .route("/take", post(take));
        let (stream, server) = tokio::io::duplex(1 << 20);
        let front = Front::new(app, Rules::new(false, Vec::new())).for_peer(([192, 0, 2, 7], 9).into());
        let open = Arc::new(Connections::new(ConnectionLimits::default())).open([192, 0, 2, 7].into());
        let (ending, told) = watch::channel(());
        tokio::spawn(connection(server, front, open.unwrap(), told));
        Client { stream, ending, connected: Instant::now() }
    }

    impl Client {
        async fn say(&mut self, text: &str) {
            self.stream.write_all(text.as_bytes()).await.unwrap();
        }

        async fn ask(&mut self, path: &str) {
            self.say(&format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")).await;
        }

        /// Everything up to an answer with these words at its end.
        async fn hear(&mut self, words: &str) -> String {
            let mut heard = Vec::new();
            while !heard.ends_with(words.as_bytes()) {
                assert!(self.stream.read_buf(&mut heard).await.unwrap() > 0, "{heard:?}, and the end");
            }
            String::from_utf8(heard).unwrap()
        }

        /// All that comes before the connection ends, and how many seconds after its beginning it does.
        async fn rest(mut self) -> (String, u64) {
            let mut rest = String::new();
            self.stream.read_to_string(&mut rest).await.unwrap();
            (rest, self.connected.elapsed().as_secs())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_must_come_within_ten_seconds_of_its_first_byte() {
        for start in ["G", "PRI * HT", "GET / HTTP/1.1\r\nhost: a\r\n"] {
            let mut client = connect();
            client.say(start).await;
            assert_eq!(client.rest().await, (String::new(), 10), "{start}");
        }
        let client = connect();
        let (mut reads, mut writes) = tokio::io::split(client.stream);
        let drip = async {
            for byte in b"GET / HTTP/1.1\r\nhost: a\r\n\r\n" {
                pause(Millis::from_secs(1)).await;
                if writes.write_all(&[*byte]).await.is_err() {
                    break;
                }
            }
        };
        let mut heard = String::new();
        let ((), read) = tokio::join!(drip, reads.read_to_string(&mut heard));
        read.unwrap();
        assert_eq!(heard, "", "a drop now and then is not enough");
        assert_eq!(
            client.connected.elapsed().as_secs(),
            12,
            "the first drop after one, and one more to notice"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn who_says_nothing_for_a_minute_is_gone() {
        assert_eq!(connect().rest().await, (String::new(), 60));
        let mut client = connect();
        for _ in 0..3 {
            pause(Millis::from_secs(50)).await;
            client.ask("/").await;
            client.hear("now").await;
        }
        assert_eq!(client.rest().await, (String::new(), 150 + 60));
        let mut client = connect();
        client.ask("/").await;
        client.hear("now").await;
        pause(Millis::from_secs(55)).await;
        client.say("GET / HTTP/1.1\r\n").await;
        assert_eq!(client.rest().await, (String::new(), 55 + 10), "the next head has its own time");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_under_way_has_all_the_time_it_needs() {
        let mut client = connect();
        client.ask("/later").await;
        client.hear("later").await;
        client.ask("/words").await;
        client.hear("word \r\n0\r\n\r\n").await;
        assert_eq!(client.connected.elapsed().as_secs(), 2 * 3_600);
        assert_eq!(client.rest().await, (String::new(), 2 * 3_600 + 60), "and then it is idle");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_comes_too_slowly_is_answered_so_and_the_connection_ends() {
        let mut client = connect();
        client.say("POST /take HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nslow").await;
        let (answer, after) = client.rest().await;
        assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("\"code\":\"TOO_SLOW\""), "{answer}");
        assert!(answer.contains("connection: close\r\n") && answer.contains("nosniff"), "{answer}");
        assert_eq!(after, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_has_64_kib_and_a_hundred_headers() {
        let with = async |headers: &str| {
            let mut client = connect();
            client.say(&format!("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{headers}\r\n")).await;
            client.rest().await.0
        };
        let (many, more) = ("a: b\r\n".repeat(98), "a: b\r\n".repeat(99));
        assert!(with(&many).await.starts_with("HTTP/1.1 200 "));
        assert!(with(&more).await.starts_with("HTTP/1.1 431 "));
        let long = |bytes: usize| format!("a: {}\r\n", "b".repeat(bytes));
        assert!(with(&long(60 << 10)).await.starts_with("HTTP/1.1 200 "));
        assert!(with(&long(64 << 10)).await.starts_with("HTTP/1.1 431 "));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_of_http2_ends_when_it_is_idle_and_not_before() {
        let Client { stream, ending, connected } = connect();
        let handshake = client::Builder::new(TokioExecutor::new()).handshake(TokioIo::new(stream));
        let (mut requests, served) = handshake.await.unwrap();
        let served = tokio::spawn(served);
        let mut ask = async |path: &str| {
            let request = Request::get(format!("http://a{path}")).body(Empty::<Bytes>::new()).unwrap();
            requests.send_request(request).await.unwrap().into_body().collect().await.unwrap().to_bytes()
        };
        assert_eq!(ask("/later").await, "later");
        assert_eq!(ask("/words").await.len(), 240 * 5);
        served.await.unwrap().unwrap();
        let idle = connected.elapsed().as_secs() - 2 * 3_600;
        assert!((60..=120).contains(&idle), "{idle}");
        drop(ending);
    }

    #[tokio::test(start_paused = true)]
    async fn at_the_end_what_is_under_way_is_answered_and_what_is_idle_is_not_waited_for() {
        let mut busy = connect();
        busy.ask("/later").await;
        tokio::task::yield_now().await;
        busy.ending.send_replace(());
        assert!(busy.rest().await.0.ends_with("later"));
        let idle = connect();
        idle.ending.send_replace(());
        assert_eq!(idle.rest().await, (String::new(), 0));
    }
}
