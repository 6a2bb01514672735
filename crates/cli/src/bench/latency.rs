//! One producer and one consumer that waits: from the enqueue call to the delivery, beside a bare sync.

use super::Context;
use super::caller::Caller;
use super::measure::{BareSync, Latencies, Stopwatch, median};
use super::process::Process;
use super::report::{Limit, Report};

const GROUP: &str = "latency";
/// How many syncs a delivery may take at the median: that of the enqueue, that of the lease, and half of one.
const SYNCS_MAX: f64 = 2.5;
/// And what all the rest may take.
const REST_MAX_MS: f64 = 1.0;
/// Messages of a round.
const SAMPLES: usize = 500;

pub(crate) async fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    context.begin("latency", u64::from(context.rounds) * SAMPLES as u64);
    let (mut delivered, mut synced) = (Vec::new(), Vec::new());
    for round in 1..=context.rounds {
        let dir = tempfile::tempdir_in(context.dir.path())?;
        let process = match &context.url {
            Some(_) => None,
            None => Some(Process::serve(dir.path(), None)?),
        };
        let url = match (&context.url, &process) {
            (None, Some(process)) => process.url(),
            (url, _) => url.clone().unwrap_or_default(),
        };
        let mut caller =
            Caller::connect(&url, "redrive-bench-latency".to_owned(), 1, context.body_bytes).await?;
        let mut bare = BareSync::prepare(&dir.path().join("sync"), context.body_bytes.max(1))?;
        let mut syncs = Latencies::new();
        let watch = Stopwatch::start();
        for _ in 0..SAMPLES {
            caller.life_cycle(1).await?;
            syncs.add(tokio::task::block_in_place(|| bare.commit())?);
            context.step();
        }
        let deliver = &caller.latencies.deliver;
        let (p50, sync) = (deliver.percentile_ms(50.0), syncs.percentile_ms(50.0));
        report.row(
            GROUP,
            "server",
            round,
            &[
                ("deliver p50 ms", p50),
                ("deliver p99 ms", deliver.percentile_ms(99.0)),
                ("enqueue p50 ms", caller.latencies.enqueue.percentile_ms(50.0)),
                ("ack p50 ms", caller.latencies.ack.percentile_ms(50.0)),
                ("bare sync p50 ms", sync),
                ("bare sync p99 ms", syncs.percentile_ms(99.0)),
                ("s", watch.elapsed().as_secs_f64()),
            ],
        );
        delivered.push(p50);
        synced.push(sync);
    }
    if context.url.is_none() {
        let limit = SYNCS_MAX * median(&synced) + REST_MAX_MS;
        report.judge("deliver_p50_ms", &delivered, Limit::AtMost(limit));
    }
    Ok(())
}
