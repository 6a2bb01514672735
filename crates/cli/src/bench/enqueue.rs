//! 256 HTTP clients, each of which enqueues one message after another: what the server pays for one, beside a handler
//! that parses the same JSON and does nothing with it.

use std::io::Write as _;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::body::Bytes;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::future::try_join_all;
use redrive_server::{Port, PortConfig};
use redrive_wire::{NewMessage, Object};
use serde_json::json;

use super::Context;
use super::measure::{Latencies, Stopwatch};
use super::poster::Poster;
use super::process::Process;
use super::report::{Limit, Report};

const GROUP: &str = "enqueue";
/// Clients at a time.
const CLIENTS: usize = 256;
/// What the queue may cost on top of the HTTP around it.
const CPU_MAX_US: f64 = 15.0;
/// How long one arm runs before it is the other's turn.
const SLICE: Duration = Duration::from_millis(500);
/// Where both take their messages.
const PATH: &str = "/v1/queues/redrive-bench/messages";

/// The clients of one server, and what they did.
pub(super) struct Arm {
    process: Process,
    posters: Vec<Poster>,
    latencies: Latencies,
    done: usize,
    wall: Duration,
    cpu: Duration,
}

impl Arm {
    /// Clients that show `token`, if there is one.
    pub(super) async fn start(process: Process, json: &str, token: Option<&str>) -> anyhow::Result<Self> {
        let posters = (0..CLIENTS).map(|_| Poster::connect(process.address(), PATH, json, token));
        let posters = try_join_all(posters).await?;
        let mut arm = Self {
            process,
            posters,
            latencies: Latencies::new(),
            done: 0,
            wall: Duration::ZERO,
            cpu: Duration::ZERO,
        };
        // The first slice makes the queue, and brings the memory of the connections in.
        arm.slice().await?;
        (arm.latencies, arm.done) = (Latencies::new(), 0);
        (arm.wall, arm.cpu) = (Duration::ZERO, Duration::ZERO);
        Ok(arm)
    }

    pub(super) async fn slice(&mut self) -> anyhow::Result<()> {
        let before = self.process.cpu()?;
        let slice = Stopwatch::start();
        let clients = try_join_all(self.posters.iter_mut().map(async |poster| {
            let mut latencies = Vec::new();
            while slice.elapsed() < SLICE {
                let watch = Stopwatch::start();
                poster.post().await?;
                latencies.push(watch.elapsed());
            }
            anyhow::Ok(latencies)
        }));
        for latency in clients.await?.into_iter().flatten() {
            self.latencies.add(latency);
            self.done += 1;
        }
        self.wall += slice.elapsed();
        self.cpu += self.process.cpu()?.saturating_sub(before);
        Ok(())
    }

    pub(super) fn cpu_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.done as f64
    }

    pub(super) fn figures(&self) -> [(&'static str, f64); 4] {
        [
            ("requests/s", self.done as f64 / self.wall.as_secs_f64()),
            ("server cpu us", self.cpu_us()),
            ("p50 ms", self.latencies.percentile_ms(50.0)),
            ("p99 ms", self.latencies.percentile_ms(99.0)),
        ]
    }
}

/// How often each arm of a round has its turn.
pub(super) fn slices(context: &Context) -> u64 {
    u64::try_from(context.arm.as_millis() / SLICE.as_millis()).unwrap_or(1).max(1)
}

/// What each client enqueues.
pub(super) fn message(context: &Context) -> String {
    let body = "a".repeat(context.body_bytes);
    json!({"body": body, "type": "invoice.paid", "source": "bench"}).to_string()
}

pub(crate) async fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let slices = slices(context);
    context.begin("HTTP enqueues", u64::from(context.rounds) * slices);
    let json = message(context);
    let mut over = Vec::new();
    for round in 1..=context.rounds {
        let dir = tempfile::tempdir_in(context.dir.path())?;
        let mut beside = Arm::start(Process::parse_only()?, &json, None).await?;
        let mut server = Arm::start(Process::serve(dir.path(), None)?, &json, None).await?;
        for _ in 0..slices {
            beside.slice().await?;
            server.slice().await?;
            context.step();
        }
        report.row(GROUP, "parse only", round, &beside.figures());
        report.row(GROUP, "server", round, &server.figures());
        over.push(server.cpu_us() - beside.cpu_us());
    }
    report.judge("enqueue_cpu_over_parse_us", &over, Limit::AtMost(CPU_MAX_US));
    Ok(())
}

/// Serves the handler that only parses.
pub(crate) async fn parse_only() -> anyhow::Result<()> {
    let port = Port::listen((Ipv4Addr::LOCALHOST, 0).into(), PortConfig::default()).context("listening")?;
    let address = port.address().context("listening")?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "redrive is ready on http://{address}").and_then(|()| stdout.flush())?;
    let app = Router::new().route("/v1/queues/{queue}/messages", post(parse));
    port.serve(app, std::future::pending()).await;
    Ok(())
}

async fn parse(body: Bytes) -> Response {
    match serde_json::from_slice::<Object<NewMessage>>(&body) {
        Ok(message) => {
            drop(std::hint::black_box(message));
            let id = "01987654-3210-7abc-8def-0123456789ab";
            let answer = json!({"id": id, "duplicate": false, "visible_at": "2026-01-01T00:00:00.000Z"});
            let kind = [(header::CONTENT_TYPE, "application/json")];
            (StatusCode::CREATED, kind, answer.to_string()).into_response()
        }
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}
