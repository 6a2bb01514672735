//! Running a child process so that the log shows what ran, and a failure says why.

use std::env;
use std::fmt;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Why a command of ours did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A tool is missing; `remedy` is what to type.
    NotInstalled { tool: &'static str, remedy: &'static str },
    /// The program could not be started at all.
    NotStarted { command: String, cause: io::Error },
    /// The program ran and said no; its own output has the details.
    Exited { command: String, status: ExitStatus },
    /// The repository could not be read.
    Unreadable { path: String, cause: io::Error },
    /// Tidy has printed this many findings.
    Untidy { findings: usize },
    /// Inputs were found that break these fuzz targets; they are in `folder`.
    Broken { targets: Vec<String>, folder: String },
    /// The page is not the one that its sources make; these differ.
    Stale { paths: Vec<String> },
    /// A step of `cargo xtask test` failed.
    Step { step: &'static str, cause: Box<Failure> },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInstalled { tool, remedy } => write!(f, "{tool} is not installed: `{remedy}`"),
            Self::NotStarted { command, cause } => write!(f, "`{command}` could not be started: {cause}"),
            Self::Exited { command, status } => write!(f, "`{command}` ended with {status}"),
            Self::Unreadable { path, cause } => write!(f, "{path} could not be read: {cause}"),
            Self::Untidy { findings: 1 } => write!(f, "1 finding"),
            Self::Untidy { findings } => write!(f, "{findings} findings"),
            Self::Broken { targets, folder } => {
                write!(f, "inputs that fail were found for {}: they are in {folder}", targets.join(", "))
            }
            Self::Stale { paths } => write!(
                f,
                "the page is not the one that its sources make: `cargo xtask ui` builds {} anew, which belong into the commit",
                paths.join(", ")
            ),
            Self::Step { step, cause } => write!(f, "step `{step}` failed: {cause}"),
        }
    }
}

/// `cargo` with these arguments, in the repository's root; the toolchain is the one that runs us.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root);
    command
}

/// The same beside the servers that tests share. They are started first, and end with it.
pub(crate) fn cargo_beside_servers(root: &Path, arguments: &[&str]) -> Command {
    let beside = cargo(root, arguments);
    let mut command =
        cargo(root, &["run", "--quiet", "--locked", "--package", "redrive-test-servers", "--", "run", "--"]);
    command.arg(beside.get_program()).args(beside.get_args());
    command
}

/// Prints the command as a person would type it, runs it with our own output, and waits for it.
pub(crate) fn run(mut command: Command) -> Result<(), Failure> {
    let shown = shown(&command);
    eprintln!("$ {shown}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Exited { command: shown, status }),
        Err(cause) => Err(Failure::NotStarted { command: shown, cause }),
    }
}

/// The same with only those lines of its errors that are worth telling.
pub(crate) fn run_telling(mut command: Command, worth: impl Fn(&str) -> bool) -> Result<(), Failure> {
    let shown = shown(&command);
    eprintln!("$ {shown}");
    let not_started = |cause| Failure::NotStarted { command: shown.clone(), cause };
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(not_started)?;
    for line in
        child.stderr.take().into_iter().flat_map(|errors| BufReader::new(errors).split(b'\n')).flatten()
    {
        let line = String::from_utf8_lossy(&line);
        if worth(&line) {
            eprintln!("{line}");
        }
    }
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Exited { command: shown, status }),
        Err(cause) => Err(Failure::NotStarted { command: shown, cause }),
    }
}

/// Runs a command and answers what it printed; its errors still go to ours.
pub(crate) fn output(mut command: Command) -> Result<Vec<u8>, Failure> {
    let shown = shown(&command);
    match command.stderr(Stdio::inherit()).output() {
        Ok(output) if output.status.success() => Ok(output.stdout),
        Ok(output) => Err(Failure::Exited { command: shown, status: output.status }),
        Err(cause) => Err(Failure::NotStarted { command: shown, cause }),
    }
}

/// Whether `cargo <subcommand>` exists and works. A rustup proxy without its component exists but does not work, so
/// only running it tells.
pub(crate) fn has_subcommand(root: &Path, subcommand: &str) -> bool {
    cargo(root, &[subcommand, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Does the work and says how long it took.
#[expect(clippy::disallowed_methods, reason = "a step's duration is for the reader; nothing decides by it")]
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// The command as a shell would take it: what it adds to the environment, then the program's name without its folder.
pub(crate) fn shown(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        Some(format!("{}={:?}", name.to_string_lossy(), value?.to_string_lossy()))
    });
    let program = Path::new(command.get_program()).file_stem().unwrap_or(command.get_program());
    let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    let words: Vec<String> =
        variables.chain([program.to_string_lossy().into_owned()]).chain(arguments).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let mut command = Command::new("/toolchain/bin/cargo");
        command.args(["doc", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(shown(&command), r#"RUSTDOCFLAGS="-D warnings" cargo doc --no-deps"#);
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let failure = run(Command::new("redrive-no-such-program")).expect_err("it cannot be started");
        assert!(failure.to_string().starts_with("`redrive-no-such-program` could not be started"));
    }

    #[test]
    fn an_unknown_subcommand_is_not_installed() {
        assert!(!has_subcommand(Path::new("."), "redrive-no-such-subcommand"));
    }
}
