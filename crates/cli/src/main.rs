//! The program `redrive`. The only place where a store, a clock, a broker and a server are put together.

mod arguments;
mod bench;
mod clock;
mod config;
mod confirm;
mod dead;
mod enqueue;
mod events;
mod exit;
mod exposure;
mod key;
mod keys;
mod lease;
mod logs;
mod message;
mod operation;
mod output;
mod port;
mod progress;
mod queue;
mod remote;
mod schema;
mod serve;
mod settle;
mod span;
mod store;
mod system;
mod traces;
mod when;
mod work;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A durable work queue for work that fails.
#[derive(Debug, Parser)]
#[command(name = "redrive", version, max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the server.
    Serve(Box<serve::ServeArguments>),
    /// Prints the schema that PostgreSQL keeps the queues in, as SQL. `serve` makes it by itself where it may.
    Schema(schema::SchemaArguments),
    /// Queues and their settings.
    Queue(queue::QueueArguments),
    /// Puts work into a queue, and prints its id.
    Enqueue(Box<enqueue::EnqueueArguments>),
    /// Takes work from a queue, and prints the receipts that settle it.
    Lease(lease::LeaseArguments),
    /// The work is done.
    Ack(settle::AckArguments),
    /// The work failed; the queue's policy says when it is tried again.
    Nack(settle::NackArguments),
    /// The work takes longer.
    Extend(settle::ExtendArguments),
    /// Gives work back unharmed.
    Release(settle::ReleaseArguments),
    /// The work must never be tried again.
    Bury(settle::BuryArguments),
    /// Runs a program for each message of a queue.
    Work(Box<work::WorkArguments>),
    /// Messages: looking at them, moving and discarding them.
    Message(Box<message::MessageArguments>),
    /// Dead letters: what was given up, and the way back.
    Dead(Box<dead::DeadArguments>),
    /// Work on many messages, and how far it is.
    Operation(operation::OperationArguments),
    /// What happens, as it happens.
    Events(events::EventsArguments),
    /// API keys.
    Key(keys::KeyArguments),
    /// Measures the server, or puts load on one.
    Bench(bench::BenchArguments),
    /// Serves the handler beside which `bench` measures.
    #[command(hide = true)]
    BenchParseOnly,
    /// Prints the description of the HTTP API.
    #[command(hide = true)]
    Openapi,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = |()| ExitCode::SUCCESS;
    let outcome = match arguments.command {
        Command::Serve(arguments) => serve::run(*arguments).map(done),
        Command::Schema(arguments) => schema::run(arguments).map(done),
        Command::Queue(arguments) => Ok(queue::run(arguments)),
        Command::Enqueue(arguments) => Ok(enqueue::run(*arguments)),
        Command::Lease(arguments) => Ok(lease::run(arguments)),
        Command::Ack(arguments) => Ok(settle::ack(arguments)),
        Command::Nack(arguments) => Ok(settle::nack(arguments)),
        Command::Extend(arguments) => Ok(settle::extend(arguments)),
        Command::Release(arguments) => Ok(settle::release(arguments)),
        Command::Bury(arguments) => Ok(settle::bury(arguments)),
        Command::Work(arguments) => Ok(work::run(*arguments)),
        Command::Message(arguments) => Ok(message::run(*arguments)),
        Command::Dead(arguments) => Ok(dead::run(*arguments)),
        Command::Operation(arguments) => Ok(operation::run(arguments)),
        Command::Events(arguments) => Ok(events::run(arguments)),
        Command::Key(arguments) => keys::run(arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::BenchParseOnly => bench::parse_only().map(done),
        Command::Openapi => openapi().map(done),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("redrive: {error:#}");
            exit::Exit::Failed.into()
        }
    }
}

fn openapi() -> anyhow::Result<()> {
    println!("{}", serde_json::to_string_pretty(&redrive_server::http::openapi())?);
    Ok(())
}
