//! 256 HTTP clients that enqueue: what it costs the server to know who they are.

use anyhow::{Context as _, anyhow};
use serde_json::{Value, json};

use super::Context;
use super::enqueue::{Arm, message, slices};
use super::poster::Poster;
use super::process::Process;
use super::report::{Limit, Report};
use crate::key;

const GROUP: &str = "keys";
/// What an enqueue under a key may cost, beside one without.
const RATIO_MAX: f64 = 1.1;

pub(crate) async fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let slices = slices(context);
    context.begin("HTTP enqueues under keys", u64::from(context.rounds) * slices);
    let json = message(context);
    let mut ratios = Vec::new();
    for round in 1..=context.rounds {
        let (one, other) =
            (tempfile::tempdir_in(context.dir.path())?, tempfile::tempdir_in(context.dir.path())?);
        let mut open = Arm::start(Process::serve(one.path(), None)?, &json, None).await?;
        let bootstrap = key::generate()?.expose();
        let server = Process::serve(other.path(), Some(&bootstrap))?;
        let token = producer(&server, &bootstrap).await?;
        let mut keyed = Arm::start(server, &json, Some(&token)).await?;
        for _ in 0..slices {
            open.slice().await?;
            keyed.slice().await?;
            context.step();
        }
        report.row(GROUP, "anyone", round, &open.figures());
        report.row(GROUP, "keys", round, &keyed.figures());
        ratios.push(keyed.cpu_us() / open.cpu_us());
    }
    report.judge("enqueue_cpu_with_keys", &ratios, Limit::AtMost(RATIO_MAX));
    Ok(())
}

/// A key that may produce and nothing else, as a producer has it, among a thousand others; and the queue for it.
async fn producer(server: &Process, bootstrap: &str) -> anyhow::Result<String> {
    let queue = json!({"name": "redrive-bench"}).to_string();
    let mut create = Poster::connect(server.address(), "/v1/queues", &queue, Some(bootstrap)).await?;
    create.post().await.context("the queue")?;
    let grants =
        json!([{"scope": "produce", "queues": "orders.*"}, {"scope": "produce", "queues": "redrive-*"}]);
    let key = json!({"name": "producer", "grants": grants}).to_string();
    let mut keys = Poster::connect(server.address(), "/v1/keys", &key, Some(bootstrap)).await?;
    for _ in 0..1_000 {
        keys.post().await.context("a key")?;
    }
    let made: Value = serde_json::from_slice(keys.body()).context("the key")?;
    let token = made["token"].as_str().ok_or_else(|| anyhow!("a key without a token"))?;
    Ok(token.to_owned())
}
