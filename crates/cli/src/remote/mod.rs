//! What every command shares that asks a server: where it is, how it is asked, and what is made of a refusal.
//!
//! A command says what it wants of a [`Session`]; [`Asking::run`] makes one from flags, environment and contexts, and
//! turns whatever went wrong into a line on stderr and an exit code.

mod answer;
mod client;
mod connection;
mod contexts;
mod failure;
mod pages;

use std::process::ExitCode;

use clap::Args;

pub(crate) use answer::Answer;
pub(crate) use client::{Query, Remote};
pub(crate) use connection::{Connection, ConnectionArguments};
pub(crate) use failure::Failure;
pub(crate) use pages::{HowMany, Pages};

use crate::output::{Output, OutputArguments};

/// The flags of every command that asks a server.
#[derive(Debug, Args)]
pub(crate) struct Asking {
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

/// A server to ask, and where to print what it says.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) remote: Remote,
    pub(crate) output: Output,
}

impl Asking {
    /// Does the work of a command, until it is done or somebody presses Ctrl-C.
    pub(crate) fn run(self, work: impl AsyncFnOnce(&Session) -> Result<(), Failure>) -> ExitCode {
        let output = self.output.output();
        let connection = self.connection;
        ask(&output.clone(), async move || {
            let connection: Connection = connection.resolve()?;
            let remote = Remote::new(&connection)?;
            work(&Session { remote, output }).await
        })
    }
}

/// Runs something that may end early, and tells how it ended.
pub(crate) fn ask(output: &Output, work: impl AsyncFnOnce() -> Result<(), Failure>) -> ExitCode {
    // One thread is enough for one caller; what blocks has threads of its own.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return output.failed(&Failure::Io("starting".to_owned(), error)),
    };
    let done = runtime.block_on(async {
        tokio::select! {
            done = work() => done,
            Ok(()) = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
        }
    });
    // A thread may still wait for a line that nobody types.
    runtime.shutdown_background();
    output.ended(done)
}
