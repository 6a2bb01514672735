//! Whole requests, as the server answers them: paths, query strings, headers, cursors and protos, over a store in memory.

use std::cell::RefCell;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use redrive_broker::{Access, Background, Broker, BrokerConfig, Clock, Gate};
use redrive_bus::{Bus, BusBackground, BusConfig};
use redrive_core::receipt::ReceiptKey;
use redrive_core::time::Timestamp;
use redrive_server::{grpc, http};
use redrive_store::{DeleteQueue, Limit, LogName};
use redrive_store_memory::{MemoryStore, Options};
use redrive_wire::Problem;
use tokio::runtime::Runtime;
use tower::ServiceExt;

use crate::trial::note;

/// How many inputs one server answers. It forgets its queues after each, but not all that it has counted.
const INPUTS_MAX: u32 = 2_000;
/// How many requests of one input are sent.
const REQUESTS_MAX: usize = 8;
/// How often a request is looked after that has no answer yet: one that waits for time, or for ever, never has one.
const LOOKS_MAX: usize = 64;

/// A clock that stands still.
#[derive(Debug)]
struct Still;

#[async_trait]
impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000)
    }

    async fn until(&self, at: Timestamp) {
        if at > self.now() {
            std::future::pending::<()>().await;
        }
    }
}

/// A server without a network.
struct Server {
    runtime: Runtime,
    router: Router,
    broker: Broker,
    _background: (Background, BusBackground),
    inputs: u32,
}

thread_local! {
    static SERVER: RefCell<Option<Server>> = const { RefCell::new(None) };
}

impl Server {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.expect("a runtime without I/O needs nothing");
        let (router, broker, background) = runtime.block_on(async {
            let store = MemoryStore::new(Options::new(ReceiptKey::new([7; 32])));
            let config = BrokerConfig { auto_create: true, ..BrokerConfig::default() };
            let started = Broker::start(Arc::new(store), Arc::new(Still), config).await;
            let (broker, background) = started.expect("a store in memory opens");
            let gate = Gate::new(broker.clone(), Access::Anyone).await.expect("a store in memory answers");
            let started = Bus::start(broker.clone(), BusConfig::default()).await;
            let (bus, deliveries) = started.expect("a store in memory answers");
            let router = http::router(http::Api::new(gate.clone(), bus.clone()));
            (grpc::add_to(router, gate, bus).await, broker, (background, deliveries))
        });
        Self { runtime, router, broker, _background: background, inputs: 0 }
    }

    /// Has the server do something, and then forget its queues. What it costs to start one is not the input's to pay.
    fn with(work: impl FnOnce(&Self)) {
        SERVER.with_borrow_mut(|slot| {
            if slot.as_ref().is_none_or(|server| server.inputs == INPUTS_MAX) {
                *slot = Some(uncounted(Self::start));
            }
            let Some(server) = slot else { return };
            server.inputs += 1;
            work(server);
            server.runtime.block_on(server.forget());
        });
    }

    async fn forget(&self) {
        let queues = self.broker.list_queues(None, Limit::MAX).await.expect("a store in memory answers");
        for queue in queues {
            let delete = DeleteQueue { name: queue.name, force: true };
            self.broker.delete_queue(delete).await.expect("a queue that is there can be deleted");
        }
        // An input that reads the trail pays for what it did itself, and not for all that was done before it.
        let trail = LogName::new("audit").expect("a good name");
        let forgotten = self.broker.store().log_trim(&trail, Timestamp::MAX).await;
        forgotten.expect("a store in memory answers");
    }

    /// The answer to a request, unless it waits for something that does not come.
    fn answer(&self, request: Request<Body>) -> Option<Response<Body>> {
        let call = self.router.clone().oneshot(request);
        let answer = self.runtime.block_on(soon(call))?;
        answer.map_err(|never| match never {}).ok()
    }

    /// All of an answer, unless it has no end.
    fn all(&self, answer: Response<Body>) -> Option<Vec<u8>> {
        let body = self.runtime.block_on(soon(answer.into_body().collect()))?;
        body.ok().map(|body| body.to_bytes().into())
    }
}

/// What the work comes to, if it comes to it without waiting for time.
async fn soon<T>(work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = async { for _ in 0..LOOKS_MAX { tokio::task::yield_now().await } } => None,
    }
}

/// Runs what must not be counted.
fn uncounted<T>(work: impl FnOnce() -> T) -> T {
    let mut made = None;
    allocation_counter::opt_out(|| made = Some(work()));
    made.expect("it was run")
}

/// Requests as HTTP/1.1 writes them, with line feeds and without a version, divided by lines of `====`. `$I` stands for the
/// id of a message that is leased in the queue `q`, and `$R` for its receipt.
pub fn http(input: &[u8]) {
    Server::with(|server| {
        let input = server.filled(input);
        let mut rest = &input[..];
        for _ in 0..REQUESTS_MAX {
            let end = rest.windows(6).position(|window| window == b"\n====\n");
            let one = end.map_or(rest, |end| &rest[..end]);
            if let Some(request) = request(one) {
                server.check(request);
            }
            let Some(end) = end else { return };
            rest = &rest[end + 6..];
        }
    });
}

fn request(text: &[u8]) -> Option<Request<Body>> {
    let (head, body) = match text.windows(2).position(|window| window == b"\n\n") {
        Some(end) => (&text[..end], &text[end + 2..]),
        None => (text, &[][..]),
    };
    let mut lines = head.split(|byte| *byte == b'\n');
    let mut first = lines.next()?.splitn(2, |byte| *byte == b' ');
    let mut request = Request::builder().method(first.next()?).uri(first.next()?);
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        request = request.header(&line[..colon], line[colon + 1..].trim_ascii());
    }
    request.body(Body::from(body.to_vec())).ok()
}

impl Server {
    /// An input with a message that is there, where it asks for one.
    fn filled(&self, input: &[u8]) -> Vec<u8> {
        if !input.windows(2).any(|window| window == b"$R" || window == b"$I") {
            return input.to_vec();
        }
        let post = |path: &str| {
            let request = Request::post(path).body(Body::from("{}")).expect("a good request");
            let answer = self.answer(request).and_then(|answer| self.all(answer)).unwrap_or_default();
            serde_json::from_slice(&answer).unwrap_or(serde_json::Value::Null)
        };
        let id = post("/v1/queues/q/messages")["id"].as_str().unwrap_or_default().to_owned();
        let leased =
            post("/v1/queues/q/lease")["messages"][0]["receipt"].as_str().unwrap_or_default().to_owned();
        replaced(&replaced(input, b"$I", id.as_bytes()), b"$R", leased.as_bytes())
    }

    /// The server never fails, and what it refuses it refuses in the form that clients know.
    fn check(&self, request: Request<Body>) {
        let Some(answer) = self.answer(request) else { return note("no answer yet") };
        let status = answer.status();
        note(format_args!("{status:?}"));
        assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR);
        let kind =
            answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).map(str::to_owned);
        let Some(body) = self.all(answer) else { return note("no end yet") };
        match kind.as_deref() {
            Some("application/problem+json") => {
                let problem: Problem = serde_json::from_slice(&body).expect("a problem has its form");
                assert_eq!(problem.status, status.as_u16());
                note(problem.code);
                note(problem.detail);
            }
            Some("application/json") => {
                let valid = serde_json::from_slice::<serde::de::IgnoredAny>(&body);
                assert!(valid.is_ok(), "an answer is not JSON: {}", String::from_utf8_lossy(&body));
            }
            _ => assert!(!status.is_client_error(), "{status} without a problem: {kind:?}"),
        }
    }
}

fn replaced(input: &[u8], word: &[u8], with: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(input.len());
    let mut rest = input;
    while let Some(at) = rest.windows(2).position(|window| window == word) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(with);
        rest = &rest[at + 2..];
    }
    out.extend_from_slice(rest);
    out
}

/// The calls of the gRPC service.
const CALLS: [&str; 17] = [
    "Enqueue",
    "Lease",
    "Ack",
    "Nack",
    "Extend",
    "Release",
    "Bury",
    "Consume",
    "CreateQueue",
    "GetQueue",
    "ListQueues",
    "UpdateQueue",
    "DeleteQueue",
    "PauseQueue",
    "ResumeQueue",
    "QueueStats",
    "WatchEvents",
];

/// A call of the gRPC service: the first byte says which, and the rest is its message.
pub fn grpc(input: &[u8]) {
    let Some((call, message)) = input.split_first() else { return };
    let call = CALLS[usize::from(*call) % CALLS.len()];
    let length = u32::try_from(message.len()).expect("an input is far below 4 GiB");
    let body = [&[0], &length.to_be_bytes()[..], message].concat();
    let request = Request::post(format!("/redrive.v1.Redrive/{call}"))
        .header(header::CONTENT_TYPE, "application/grpc")
        .header(header::TE, "trailers")
        .body(Body::from(body))
        .expect("a good request");
    Server::with(|server| {
        let Some(answer) = server.answer(request) else { return note("no answer yet") };
        assert_eq!(answer.status(), StatusCode::OK);
        let said =
            |name| answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (code, problem) = (said("grpc-status"), said("grpc-message"));
        note(call);
        note(problem);
        // What is no message at all tonic calls an internal error; we have none.
        assert!(!["2", "13"].contains(&code) || problem.contains("decode"), "{call}: {code} {problem}");
        if server.all(answer).is_none() {
            note("no end yet");
        }
    });
}
