//! `redrive config`: what the server would be started with, before it is.

mod check;
mod default;
mod show;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::output::OutputArguments;

/// The configuration of the server.
#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    #[command(flatten)]
    output: OutputArguments,
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Checks the configuration: a file, the environment, and what they make together.
    Check(check::CheckArguments),
    /// Prints a configuration file with every key, its default, its variable and its flag.
    Default,
    /// Prints the values that a server would be started with. It takes the flags of `serve`.
    Show(Box<show::ShowArguments>),
}

impl ConfigArguments {
    pub(crate) fn run(self) -> ExitCode {
        let output = self.output.output();
        output.ended(match self.command {
            ConfigCommand::Check(arguments) => check::run(&arguments, &output),
            ConfigCommand::Default => output.print(&default::text()),
            ConfigCommand::Show(arguments) => show::run(*arguments, &output),
        })
    }
}
