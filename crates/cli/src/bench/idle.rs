//! A server that does nothing, by itself and with many who wait.

use std::time::Duration;

use anyhow::{Context as _, bail};
use futures::stream::{StreamExt as _, TryStreamExt as _};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Context;
use super::measure::{Stopwatch, idle};
use super::poster::Poster;
use super::process::Process;
use super::report::{Limit, Report};

const GROUP: &str = "idle";
/// Polls that wait at a time, each on a connection of its own.
const POLLS: usize = 10_000;
/// Connections that are made at a time.
const CONNECTING: usize = 64;
/// What a server alone may have in memory.
const ALONE_MAX_MB: f64 = 40.0;
/// What a server with all those polls may have in memory.
const POLLS_MAX_MB: f64 = 200.0;
/// What those polls may cost in a second: nothing, but for what the process does by itself, and the kernel's grain.
const POLLS_MAX_MS: f64 = 2.0;
/// How long a server is watched that does nothing.
const WATCHED: Duration = Duration::from_secs(10);
/// How long to wait before the server is asked again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How long all polls may take to be there.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) async fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    context.begin("an idle server", u64::from(context.rounds) * 3);
    let (mut alone, mut with_polls, mut costs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=context.rounds {
        let dir = tempfile::tempdir_in(context.dir.path())?;
        let process = Process::serve(dir.path(), None)?;
        let mut enqueue =
            Poster::connect(process.address(), "/v1/queues", r#"{"name": "redrive-bench"}"#, None).await?;
        enqueue.post().await?;
        let cost = cost_of_nothing(&process).await?;
        let megabytes = process.resident_bytes()? as f64 / 1e6;
        report.row(GROUP, "alone", round, &[("MB", megabytes), ("cpu ms/s", cost)]);
        alone.push(megabytes);
        context.step();
        let polls = polls(&process).await?;
        context.step();
        let cost = cost_of_nothing(&process).await?;
        let megabytes = process.resident_bytes()? as f64 / 1e6;
        report.row(GROUP, "10,000 polls", round, &[("MB", megabytes), ("cpu ms/s", cost)]);
        with_polls.push(megabytes);
        costs.push(cost);
        drop(polls);
        context.step();
    }
    report.judge("idle_mb", &alone, Limit::AtMost(ALONE_MAX_MB));
    report.judge("polls_mb", &with_polls, Limit::AtMost(POLLS_MAX_MB));
    report.judge("polls_cpu_ms_per_s", &costs, Limit::AtMost(POLLS_MAX_MS));
    Ok(())
}

/// CPU of a second, in milliseconds, while nobody asks for anything.
async fn cost_of_nothing(process: &Process) -> anyhow::Result<f64> {
    let (before, watch) = (process.cpu()?, Stopwatch::start());
    idle(WATCHED).await;
    let cpu = process.cpu()?.saturating_sub(before);
    Ok(cpu.as_secs_f64() * 1e3 / watch.elapsed().as_secs_f64())
}

/// Polls that all wait.
async fn polls(process: &Process) -> anyhow::Result<Vec<Poster>> {
    let path = "/v1/queues/redrive-bench/lease";
    let connect = |_| async move {
        let mut poster = Poster::connect(process.address(), path, r#"{"wait_ms": 60000}"#, None).await?;
        poster.send().await?;
        anyhow::Ok(poster)
    };
    let polls = futures::stream::iter(0..POLLS).map(connect).buffer_unordered(CONNECTING);
    let polls: Vec<Poster> = polls.try_collect().await.context("10,000 connections")?;
    let watch = Stopwatch::start();
    loop {
        let waiting = waiting(process.address()).await?;
        if waiting >= POLLS {
            break;
        }
        if watch.elapsed() > PATIENCE {
            bail!("only {waiting} of {POLLS} polls wait");
        }
        idle(LOOK_AGAIN).await;
    }
    Ok(polls)
}

/// How many polls the server says are waiting.
async fn waiting(address: &str) -> anyhow::Result<usize> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    let line = text.lines().find_map(|line| line.strip_prefix("redrive_waiting_polls "));
    line.and_then(|count| count.trim().parse().ok()).context("the server does not say how many polls wait")
}
