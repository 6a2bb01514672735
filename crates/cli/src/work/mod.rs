//! `redrive work`: a program for each message.
//!
//! A [`Worker`] takes the messages; its handler is `command`, which runs a program in a process group of its own. This file
//! is what a person types, and how it ends: the first signal lets commands finish, the second does not.

mod command;
mod stderr;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use redrive_client::{Client, Context, InvalidWorker, LEASE_TIME_MAX, Running, Worker, WorkerError};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use command::{KILL_AFTER, Program};

use crate::arguments::queue_name;
use crate::logs::{self, LogFormat};
use crate::remote::{Asking, Connection, Failure};
use crate::span::Span;

/// How long the worker itself waits beyond what the commands are given.
const MARGIN: std::time::Duration = std::time::Duration::from_secs(2);

/// Runs a program for each message: the body on its standard input, the rest in its environment. It ends with 0 where the
/// work is done, with 75 where it is to be tried later, with 100 where it must never be tried again; anything else is a
/// failure, and the last of what it wrote to its standard error says why.
#[derive(Debug, Args)]
pub(crate) struct WorkArguments {
    #[arg(value_parser = queue_name)]
    queue: String,
    /// How many commands run at a time.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    concurrency: u32,
    /// How long a message is leased; it is extended while its command runs.
    #[arg(long, value_name = "SPAN", default_value = "30s")]
    lease: Span,
    /// Under which name messages are taken; host and process id where nothing is said.
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,
    /// How long commands may still take after SIGTERM or Ctrl-C.
    #[arg(long, value_name = "SPAN", default_value = "30s")]
    grace: Span,
    /// How long a command may take; it is killed then, and the attempt has failed.
    #[arg(long, value_name = "SPAN")]
    timeout: Option<Span>,
    /// Of this type only; give it again for another.
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// From this source only; give it again for another.
    #[arg(long = "source", value_name = "SOURCE")]
    sources: Vec<String>,
    #[command(flatten)]
    asking: Asking,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Works until it is told to end.
pub(crate) fn run(arguments: WorkArguments) -> ExitCode {
    let output = arguments.asking.output.output();
    // What the worker has to say about its connection.
    if logs::start(LogFormat::Human, "warn").is_err() {
        return output.failed(&Failure::Failed("logs cannot be written".to_owned()));
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return output.failed(&Failure::Io("starting".to_owned(), error)),
    };
    let worked = runtime.block_on(work(arguments));
    runtime.shutdown_background();
    match worked {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => output.failed(&failure),
    }
}

async fn work(arguments: WorkArguments) -> Result<(), Failure> {
    let client = connect(&arguments.asking.connection.resolve()?)?;
    // Before anything is taken: a signal is never missed.
    let waiting = |error| Failure::Io("waiting for signals".to_owned(), error);
    let mut signals = (
        signal(SignalKind::terminate()).map_err(waiting)?,
        signal(SignalKind::interrupt()).map_err(waiting)?,
    );
    let (broken, mut is_broken) = mpsc::channel(1);
    let worker = worker(arguments, broken)?;
    let mut running = client.run(worker);
    tokio::select! {
        ended = running.ended() => return ended.map_err(refused),
        Some(failure) = is_broken.recv() => {
            drop(running.shutdown().await);
            return Err(failure);
        }
        () = told(&mut signals) => {}
    }
    end(running, &mut signals).await
}

/// The first signal: commands may finish. The second ends them.
async fn end(mut running: Running, signals: &mut (Signal, Signal)) -> Result<(), Failure> {
    running.begin_shutdown();
    tokio::select! {
        ended = running.ended() => ended.map_err(refused),
        () = told(signals) => {
            running.cut_short();
            running.ended().await.map_err(refused)?;
            Err(Failure::Interrupted)
        }
    }
}

async fn told((terminate, interrupt): &mut (Signal, Signal)) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

fn worker(arguments: WorkArguments, broken: mpsc::Sender<Failure>) -> Result<Worker, Failure> {
    let grace = arguments.grace.duration();
    let program = Arc::new(Program {
        command: arguments.command,
        timeout: arguments.timeout.map(Span::duration),
        grace,
        broken,
    });
    let consumer = arguments.consumer.unwrap_or_else(consumer);
    let worker = Worker::builder(arguments.queue)
        .consumer(consumer)
        .concurrency(arguments.concurrency)
        .lease_time(arguments.lease.duration())
        .grace(grace.min(LEASE_TIME_MAX) + KILL_AFTER + MARGIN)
        .types(arguments.types)
        .sources(arguments.sources)
        .handler(move |_: bytes::Bytes, context: Context| Arc::clone(&program).run(context));
    worker.map_err(|wrong| match wrong {
        InvalidWorker::LeaseTime(_) => Failure::Usage("--lease: must be from 100ms to 7d".to_owned()),
        wrong => Failure::Usage(wrong.to_string()),
    })
}

fn connect(connection: &Connection) -> Result<Client, Failure> {
    let mut builder = Client::builder(connection.url.as_str());
    if let Some(token) = &connection.token {
        builder = builder.token(token.as_str());
    }
    if let Some(ca) = &connection.ca {
        let pem = std::fs::read_to_string(ca);
        builder =
            builder.ca_pem(pem.map_err(|error| Failure::Io(format!("reading {}", ca.display()), error))?);
    }
    builder.build().map_err(|error| Failure::Usage(error.to_string()))
}

/// Who this is, for people who look at leases.
fn consumer() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}:{}", host.trim(), std::process::id())
}

fn refused(error: WorkerError) -> Failure {
    Failure::Worker(error)
}
