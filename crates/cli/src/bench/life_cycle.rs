//! Enqueue, deliver on the stream, ack on the stream: beside the engine in this process, at the same batch and with as
//! many callers.

use std::time::Duration;

use futures::future::try_join_all;

use super::Context;
use super::caller::{Caller, Steps};
use super::engine::Engine;
use super::measure::Stopwatch;
use super::process::Process;
use super::report::{Limit, Report};

const GROUP: &str = "life-cycle";
/// The share of the engine's rate that the server must reach.
const RATE_MIN: f64 = 0.4;
/// What a life cycle may cost the server.
const CPU_MAX_US: f64 = 15.0;
/// How long one arm runs before it is the other's turn.
const SLICE: Duration = Duration::from_millis(500);

/// What an arm did.
#[derive(Debug, Default)]
struct Done {
    cycles: usize,
    wall: Duration,
}

impl Done {
    fn rate(&self) -> f64 {
        self.cycles as f64 / self.wall.as_secs_f64()
    }
}

/// Who runs life cycles.
trait Cycles {
    async fn life_cycle(&mut self, count: usize) -> anyhow::Result<()>;
}

impl Cycles for Engine {
    async fn life_cycle(&mut self, count: usize) -> anyhow::Result<()> {
        self.life_cycle(count).await
    }
}

impl Cycles for Caller {
    async fn life_cycle(&mut self, count: usize) -> anyhow::Result<()> {
        self.life_cycle(count).await
    }
}

/// All callers at the same time, for a slice.
async fn slice<C: Cycles>(callers: &mut [C], batch: usize, done: &mut Done) -> anyhow::Result<()> {
    let watch = Stopwatch::start();
    let cycles = try_join_all(callers.iter_mut().map(async |caller| {
        let mut cycles = 0;
        while watch.elapsed() < SLICE {
            caller.life_cycle(batch).await?;
            cycles += batch;
        }
        anyhow::Ok(cycles)
    }));
    done.cycles += cycles.await?.into_iter().sum::<usize>();
    done.wall += watch.elapsed();
    Ok(())
}

async fn connect(context: &Context, url: &str) -> anyhow::Result<Vec<Caller>> {
    let callers = (0..context.callers).map(|number| {
        let queue = format!("redrive-bench-{number}");
        Caller::connect(url, queue, context.batch, context.body_bytes)
    });
    try_join_all(callers).await
}

fn steps(callers: &[Caller]) -> Steps {
    let mut all = Steps::new();
    for caller in callers {
        all.join(&caller.latencies);
    }
    all
}

pub(crate) async fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let slices = u64::try_from(context.arm.as_millis() / SLICE.as_millis()).unwrap_or(1).max(1);
    context.begin("life cycles", u64::from(context.rounds) * slices);
    if let Some(url) = &context.url {
        return elsewhere(context, report, url, slices).await;
    }
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    for round in 1..=context.rounds {
        let dir = tempfile::tempdir_in(context.dir.path())?;
        let mut engine =
            Engine::callers(&dir.path().join("engine"), context.callers, context.body_bytes).await?;
        let process = Process::serve(dir.path(), None)?;
        let mut callers = connect(context, &process.url()).await?;
        // What happens only once is not measured: connections, the first pages of files and of memory.
        slice(&mut engine, context.batch, &mut Done::default()).await?;
        slice(&mut callers, context.batch, &mut Done::default()).await?;
        for caller in &mut callers {
            caller.latencies = Steps::new();
        }
        let (mut beside, mut done) = (Done::default(), Done::default());
        let before = process.cpu()?;
        for _ in 0..slices {
            slice(&mut engine, context.batch, &mut beside).await?;
            slice(&mut callers, context.batch, &mut done).await?;
            context.step();
        }
        let cpu = process.cpu()?.saturating_sub(before);
        let (ratio, cost) = (done.rate() / beside.rate(), cpu.as_secs_f64() * 1e6 / done.cycles as f64);
        report.row(GROUP, "engine", round, &[("cycles/s", beside.rate())]);
        let mut figures = vec![("cycles/s", done.rate()), ("of engine", ratio), ("server cpu us", cost)];
        figures.extend(steps(&callers).figures());
        report.row(GROUP, "server", round, &figures);
        rates.push(ratio);
        costs.push(cost);
    }
    report.judge("consume_rate", &rates, Limit::AtLeast(RATE_MIN));
    report.judge("consume_cpu_us", &costs, Limit::AtMost(CPU_MAX_US));
    Ok(())
}

/// Against a server that somebody else runs.
async fn elsewhere(context: &Context, report: &mut Report, url: &str, slices: u64) -> anyhow::Result<()> {
    for round in 1..=context.rounds {
        let mut callers = connect(context, url).await?;
        let mut done = Done::default();
        for _ in 0..slices {
            slice(&mut callers, context.batch, &mut done).await?;
            context.step();
        }
        let mut figures = vec![("cycles/s", done.rate())];
        figures.extend(steps(&callers).figures());
        report.row(GROUP, "server", round, &figures);
    }
    Ok(())
}
