//! `redrive bench`: what the server costs beside what it could cost at best.
//!
//! Without `--url` it starts servers of its own and judges them: each group of figures runs in rounds, the arms of a
//! round take turns, and the median of the rounds counts. With `--url` it puts load on a server that is there, and
//! judges nothing: what that machine could do at best is not known here.
//!
//! CPU and memory are the server process's own, as the kernel counts them.

#![expect(clippy::cast_precision_loss, reason = "figures for people: 52 bits are more than a clock has")]

mod caller;
mod engine;
mod enqueue;
mod idle;
mod keys;
mod latency;
mod life_cycle;
mod measure;
mod poster;
mod process;
mod report;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use tempfile::TempDir;

use report::Report;

use crate::config;

/// Measures the server.
#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// Puts load on the server at this address instead of on one of its own. Uses queues named `redrive-bench-…`.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Only these groups.
    #[arg(long, value_name = "GROUP", value_delimiter = ',')]
    only: Vec<Group>,
    /// How often each arm is measured.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// How many seconds each arm of a round takes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    seconds: u32,
    /// How many messages a life cycle takes at a time.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    batch: u32,
    /// How large a message's body is.
    #[arg(long, default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(0..=262_144))]
    body_bytes: u32,
    /// How many callers run life cycles at a time.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    callers: u32,
    /// Where the files of the servers go, the current directory where nothing is said. They are removed at the end.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Prints one JSON document instead of tables.
    #[arg(long)]
    json: bool,
    /// Ends with exit code 1 where a bar is short.
    #[arg(long)]
    check: bool,
}

/// A group of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Group {
    /// Enqueue, deliver and ack over gRPC, beside the engine in this process.
    LifeCycle,
    /// One producer and one consumer that waits, beside a bare sync.
    Latency,
    /// 256 HTTP clients that enqueue one message at a time, beside a handler that only parses.
    Enqueue,
    /// The same clients with API keys, beside a server that lets in anyone.
    Keys,
    /// What a server that does nothing needs, by itself and with 10,000 long polls.
    Idle,
    /// A handler that does nothing, run by a worker, beside a bare stream with the same credit.
    Worker,
}

impl Group {
    const ALL: [Self; 6] =
        [Self::LifeCycle, Self::Latency, Self::Enqueue, Self::Keys, Self::Idle, Self::Worker];

    fn needs_own_server(self) -> bool {
        matches!(self, Self::Enqueue | Self::Keys | Self::Idle | Self::Worker)
    }
}

/// What every group is told.
struct Context {
    url: Option<String>,
    rounds: u32,
    arm: Duration,
    batch: usize,
    body_bytes: usize,
    callers: u32,
    dir: TempDir,
    progress: ProgressBar,
}

impl Context {
    fn new(arguments: &BenchArguments) -> anyhow::Result<Self> {
        let dir = arguments.dir.clone().unwrap_or_else(|| PathBuf::from("."));
        let dir = tempfile::Builder::new().prefix("redrive-bench-").tempdir_in(&dir);
        let progress = ProgressBar::new(0);
        progress.set_style(
            ProgressStyle::with_template("{elapsed_precise} [{bar:40}] {msg}").context("a progress bar")?,
        );
        progress.enable_steady_tick(Duration::from_millis(200));
        Ok(Self {
            url: arguments.url.clone(),
            rounds: arguments.rounds,
            arm: Duration::from_secs(u64::from(arguments.seconds)),
            batch: arguments.batch as usize,
            body_bytes: arguments.body_bytes as usize,
            callers: arguments.callers,
            dir: dir.context("a directory for the servers")?,
            progress,
        })
    }

    /// Says what comes next, and in how many steps.
    fn begin(&self, what: &'static str, steps: u64) {
        self.progress.reset();
        self.progress.set_length(steps);
        self.progress.set_message(what);
    }

    fn step(&self) {
        self.progress.inc(1);
    }
}

/// Measures, prints, and says whether everything that was promised holds.
pub(crate) fn run(arguments: &BenchArguments) -> anyhow::Result<ExitCode> {
    let groups: Vec<Group> = if arguments.only.is_empty() {
        Group::ALL.into_iter().filter(|group| arguments.url.is_none() || !group.needs_own_server()).collect()
    } else {
        arguments.only.clone()
    };
    if arguments.url.is_some()
        && let Some(group) = groups.iter().find(|group| group.needs_own_server())
    {
        anyhow::bail!("--only {group:?}: with --url the server is not ours, and what it costs is not seen");
    }
    crate::system::allow_many_files();
    let context = Context::new(arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config::workers())
        .enable_all()
        .build()
        .context("starting")?;
    let mut report = Report::new(context.dir.path());
    let done = runtime.block_on(async {
        for group in groups {
            match group {
                Group::LifeCycle => life_cycle::run(&context, &mut report).await.context("life-cycle")?,
                Group::Latency => latency::run(&context, &mut report).await.context("latency")?,
                Group::Enqueue => enqueue::run(&context, &mut report).await.context("enqueue")?,
                Group::Keys => keys::run(&context, &mut report).await.context("keys")?,
                Group::Idle => idle::run(&context, &mut report).await.context("idle")?,
                Group::Worker => worker::run(&context, &mut report).await.context("worker")?,
            }
        }
        anyhow::Ok(())
    });
    context.progress.finish_and_clear();
    runtime.shutdown_background();
    // What was measured before something went wrong is worth reading too.
    report.print(arguments.json)?;
    done?;
    let short = arguments.check && report.any_short();
    Ok(if short { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A handler that parses what an enqueue parses and does nothing with it, until it is killed.
pub(crate) fn parse_only() -> anyhow::Result<()> {
    // As many threads as the server beside it has.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(config::workers()).enable_all().build();
    runtime.context("starting")?.block_on(enqueue::parse_only())
}
