//! The program `redrive`. The only place where a store, a clock, a broker and a server are put together.

mod arguments;
mod bench;
mod body;
mod breaker;
mod clock;
mod config;
mod config_command;
mod confirm;
mod dead;
mod doctor;
mod enqueue;
mod events;
mod exit;
mod exposure;
mod import;
mod key;
mod keys;
mod lease;
mod logs;
mod manual;
mod message;
mod operation;
mod output;
mod port;
mod progress;
mod publish;
mod queue;
mod remote;
mod schema;
mod serve;
mod settle;
mod simulate;
mod span;
mod store;
mod store_command;
mod subscription;
mod system;
mod top;
mod topic;
mod traces;
mod webhooks;
mod when;
mod work;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A durable work queue and event bus for work that fails.
#[derive(Debug, Parser)]
#[command(name = "redrive", version, max_term_width = 110, disable_help_subcommand = true)]
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
    /// Publishes an event on a topic, and prints its id.
    Publish(Box<publish::PublishArguments>),
    /// Topics: how their events are dispatched, and for how long they are kept.
    Topic(topic::TopicArguments),
    /// Subscriptions: who gets which events, and how that goes.
    Subscription(Box<subscription::SubscriptionArguments>),
    /// Breakers of queues and of subscriptions.
    Breaker(breaker::BreakerArguments),
    /// Messages: looking at them, moving and discarding them.
    Message(Box<message::MessageArguments>),
    /// Dead letters: what was given up, and the way back.
    Dead(Box<dead::DeadArguments>),
    /// Work on many messages, and how far it is.
    Operation(operation::OperationArguments),
    /// What happens, as it happens.
    Events(events::EventsArguments),
    /// Shows the queues of a server live, and leases counting down to overdue.
    Top(top::TopArguments),
    /// API keys.
    Key(keys::KeyArguments),
    /// Checks, prints and explains the configuration of the server.
    Config(config_command::ConfigArguments),
    /// Checks, counts, repairs and copies the directory of an embedded store. No server may have it open.
    Store(store_command::StoreDirectoryArguments),
    /// Checks whether the machine, the configuration and the server are fit for work.
    Doctor(Box<doctor::DoctorArguments>),
    /// Shows what a retry policy does: when a message is tried again, and what that makes of a queue under load.
    Simulate(Box<simulate::SimulateArguments>),
    /// Measures the server, or puts load on one.
    Bench(bench::BenchArguments),
    /// Prints completions for a shell.
    Completion(manual::CompletionArguments),
    /// Prints the manual page, or writes one for each command.
    Man(manual::ManArguments),
    /// Explains the program, or one of its commands; with `--all` every command.
    Help(manual::HelpArguments),
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
        Command::Publish(arguments) => Ok(publish::run(*arguments)),
        Command::Topic(arguments) => Ok(topic::run(arguments)),
        Command::Subscription(arguments) => Ok(subscription::run(*arguments)),
        Command::Breaker(arguments) => Ok(breaker::run(arguments)),
        Command::Message(arguments) => Ok(message::run(*arguments)),
        Command::Dead(arguments) => Ok(dead::run(*arguments)),
        Command::Operation(arguments) => Ok(operation::run(arguments)),
        Command::Events(arguments) => Ok(events::run(arguments)),
        Command::Key(arguments) => keys::run(arguments),
        Command::Config(arguments) => Ok(arguments.run()),
        Command::Store(arguments) => Ok(arguments.run()),
        Command::Top(arguments) => Ok(arguments.run()),
        Command::Doctor(arguments) => Ok(arguments.run()),
        Command::Simulate(arguments) => Ok(arguments.run()),
        Command::Completion(arguments) => {
            Ok(manual::ended(manual::completion(&arguments, Arguments::command())))
        }
        Command::Man(arguments) => Ok(manual::ended(manual::man(&arguments, Arguments::command()))),
        Command::Help(arguments) => Ok(manual::ended(manual::help(&arguments, Arguments::command()))),
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
