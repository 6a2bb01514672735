//! `redrive store`: the directory of an embedded store, looked at and looked after while no server has it.

mod backup;
mod directory;
mod repair;
mod restore;
mod stats;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::output::OutputArguments;
use crate::remote::{Failure, ask};

/// The directory of an embedded store that no server has open.
#[derive(Debug, Args)]
pub(crate) struct StoreDirectoryArguments {
    #[command(flatten)]
    output: OutputArguments,
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Checks a whole directory: every frame, every record, and that both agree. Changes nothing.
    Verify(DirectoryArgument),
    /// Cuts a damaged journal off where the damage begins, after saying what that loses.
    Repair(repair::RepairArguments),
    /// Counts what is in a directory, by queue. Changes nothing.
    Stats(DirectoryArgument),
    /// Copies a directory that no server has open, and checks the copy.
    Backup(backup::BackupArguments),
    /// Copies a backup, which is checked first, to where a server can be started on it.
    Restore(restore::RestoreArguments),
}

/// A directory to look at.
#[derive(Debug, Args)]
pub(crate) struct DirectoryArgument {
    /// The directory: what `--data` of the server says.
    dir: PathBuf,
}

impl StoreDirectoryArguments {
    pub(crate) fn run(self) -> ExitCode {
        let output = self.output.output();
        match self.command {
            StoreCommand::Verify(arguments) => output.ended(verify::run(&arguments.dir, &output)),
            StoreCommand::Stats(arguments) => output.ended(stats::run(&arguments.dir, &output)),
            StoreCommand::Backup(arguments) => output.ended(backup::run(&arguments, &output)),
            // These may have to ask.
            StoreCommand::Repair(arguments) => ask(&output, async || repair::run(&arguments, &output).await),
            StoreCommand::Restore(arguments) => {
                ask(&output, async || restore::run(&arguments, &output).await)
            }
        }
    }
}

/// What went wrong with a store, in words that say what to do about it.
fn failed(error: &redrive_store::StoreError) -> Failure {
    let hint = match error {
        redrive_store::StoreError::Damaged { .. } => "; `redrive store repair` says what a repair would lose",
        _ => "",
    };
    Failure::Failed(format!("{error}{hint}"))
}
