//! What the program says about itself: completions for shells, pages for `man`, and all its help in one page.

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::output::{OutputArguments, printable};
use crate::remote::Failure;

/// The name of the program.
const NAME: &str = "redrive";

/// Prints a script that lets a shell complete what is typed.
#[derive(Debug, Args)]
pub(crate) struct CompletionArguments {
    /// The shell.
    shell: Shell,
}

/// Prints the manual page, or writes one for each command.
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Writes a page for each command into this directory.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Explains the program, or one of its commands.
#[derive(Debug, Args)]
pub(crate) struct HelpArguments {
    /// Explains every command with all its flags.
    #[arg(long, conflicts_with = "command")]
    all: bool,
    /// The command.
    command: Vec<String>,
}

pub(crate) fn completion(arguments: &CompletionArguments, mut program: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, NAME, &mut script);
    printed(&script)
}

pub(crate) fn man(arguments: &ManArguments, program: Command) -> Result<(), Failure> {
    let Some(dir) = &arguments.dir else {
        let mut page = Vec::new();
        let failed = |error| Failure::Io("the manual page".to_owned(), error);
        clap_mangen::Man::new(program).render(&mut page).map_err(failed)?;
        return printed(&page);
    };
    let failed = |error| Failure::Io(dir.display().to_string(), error);
    std::fs::create_dir_all(dir).map_err(failed)?;
    clap_mangen::generate_to(program, dir).map_err(failed)
}

pub(crate) fn help(arguments: &HelpArguments, mut program: Command) -> Result<(), Failure> {
    // Gives every command the name by which it is called.
    program.build();
    if arguments.all {
        return printed(pages(&mut program).as_bytes());
    }
    let mut command = &mut program;
    for name in &arguments.command {
        let unknown =
            || Failure::Usage(format!("there is no command `{}`; see `redrive help`", printable(name)));
        command = command.find_subcommand_mut(name).ok_or_else(unknown)?;
    }
    printed(command.render_long_help().to_string().as_bytes())
}

/// The help of a command and of all below it that people are meant to call.
fn pages(command: &mut Command) -> String {
    let name = command.get_bin_name().unwrap_or(NAME).to_owned();
    let mut text = format!("{name}\n{}\n\n{}\n", "=".repeat(name.len()), command.render_long_help());
    for below in
        command.get_subcommands_mut().filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        text += &pages(below);
    }
    text
}

fn printed(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let done = out.write_all(bytes).and_then(|()| out.flush());
    done.map_err(|error| match error.kind() {
        std::io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
        _ => Failure::Io("stdout".to_owned(), error),
    })
}

/// How a command of this file ended: they print nothing that has formats.
pub(crate) fn ended(done: Result<(), Failure>) -> std::process::ExitCode {
    OutputArguments::default().output().ended(done)
}
