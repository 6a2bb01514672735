//! The program `redrive`. The only place where a store, a clock, a broker and a server are put together.

mod bench;
mod clock;
mod config;
mod config_command;
mod confirm;
mod doctor;
mod exit;
mod exposure;
mod key;
mod logs;
mod manual;
mod output;
mod port;
mod progress;
mod remote;
mod schema;
mod serve;
mod simulate;
mod span;
mod store;
mod store_command;
mod system;
mod top;
mod traces;
mod when;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A durable work queue for work that fails.
#[derive(Debug, Parser)]
#[command(name = "redrive", version, about, max_term_width = 110, disable_help_subcommand = true)]
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
    /// Checks, prints and explains the configuration of the server.
    Config(config_command::ConfigArguments),
    /// Checks, counts, repairs and copies the directory of an embedded store. No server may have it open.
    Store(store_command::StoreDirectoryArguments),
    /// Shows the queues of a server live, and leases counting down to overdue.
    Top(top::TopArguments),
    /// Checks whether the machine, the configuration and the server are fit for work.
    Doctor(Box<doctor::DoctorArguments>),
    /// Shows what a retry policy does: when a message is tried again, and what that makes of a queue under load.
    Simulate(Box<simulate::SimulateArguments>),
    /// API keys.
    #[command(subcommand)]
    Key(key::KeyCommand),
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
        Command::Key(command) => key::run(&command).map(done),
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
