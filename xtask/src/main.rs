//! `cargo xtask <command>`: everything this repository does to itself, with nothing to install but Rust.
//!
//! * [`mod@test`] is the README's test command and all that CI runs.
//! * [`readme`] starts the product by the README's first command.
//! * [`foreign`] runs clients that are not ours against it, [`browser`] the page in a browser.
//! * [`ui`] builds that page.
//! * [`tidy`] checks what the compiler and clippy cannot see: the direction of dependencies, dead files, docs drift.
//! * [`model`] runs the model-based tests for as long as one likes.
//! * [`fuzz`] feeds hostile bytes to every parser for as long as one likes.
//! * [`deb`] makes the Debian package.
//! * [`bench_engine`] measures the embedded store, [`bench_server`] those on PostgreSQL and Redis, [`bench_bus`] the event bus.
//! * [`command`] runs a child process and says why it failed; [`server`] runs a server for the length of a step; [`debian`]
//!   and [`npm`] install what a step needs.
//!
//! The crate has no dependencies on purpose: it is built before every test run, so it has to build in seconds.

mod bench_bus;
mod bench_engine;
mod bench_server;
mod browser;
mod command;
mod deb;
mod debian;
mod foreign;
mod fuzz;
mod model;
mod npm;
mod readme;
mod server;
#[path = "../../crates/server/build/source_hash.rs"]
mod source_hash;
mod test;
mod tidy;
mod ui;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use bench_server::Server;
use command::Failure;

const USAGE: &str = "\
usage: cargo xtask <command>

  test [--only STEP[,STEP]]   fmt, clippy, tidy, ui, readme, tests, foreign, browser, docs: in this order, up to the
                              first failure
  tidy                        only the repository's own checks
  ui [--check]                the dashboard, from web/ into web/dist; it needs Node.js and npm. --check fails where
                              something else lies there
  model [--minutes N | --seed S] [--store NAME]
                              random histories against the reference, for N minutes (10 by default);
                              S is decimal or 0x hex and replays the history of one seed
  fuzz [--minutes N] [--target NAME]
                              every parser of foreign bytes under libFuzzer, N minutes in all (10 by default)
  bench-bus [--check]         what publishing costs beside plain enqueues of the same bytes, and how fast an event
                              finds its subscriptions; --check fails where a bar is short
  bench-engine [--check] [--only GROUP[,GROUP]] [--dir DIR] [--quick]
                              the embedded store beside a bare loop that writes the same; --check fails where
                              a bar is short, --quick shrinks everything and measures nothing
  bench-postgres [--check] [--only GROUP[,GROUP]] [--messages N] [--quick]
                              the store on PostgreSQL beside a bare SKIP LOCKED loop, on a server of its own;
                              N messages pass under an old transaction (1000000 by default)
  bench-redis [--check] [--only GROUP[,GROUP]] [--quick]
                              the store on Redis beside a bare XADD, XREADGROUP, XACK, XDEL loop, on a server of its own
  deb                         the Debian package, in target/debian; it needs cargo-deb
  help                        this text";

/// How a command that did not succeed ends; the two differ in their exit code, so that scripts can tell them apart.
#[derive(Debug)]
enum Exit {
    /// The command line is wrong: nothing was run.
    Usage(String),
    /// The command ran, and what it checks is not right.
    Failed(Failure),
}

impl From<Failure> for Exit {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> =
        env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Exit::Failed(failure)) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
        Err(Exit::Usage(problem)) => {
            eprintln!("xtask: {problem}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<(), Exit> {
    let Some((command, flags)) = arguments.split_first() else {
        return Err(Exit::Usage("which command?".to_owned()));
    };
    match command.as_str() {
        "test" => test::run(&root(), flags),
        "tidy" => tidy_alone(flags),
        "model" => model::run(&root(), flags),
        "fuzz" => fuzz::run(&root(), flags),
        "ui" => ui::run(&root(), flags),
        "deb" => deb::run(&root(), flags),
        "bench-bus" => bench_bus::run(&root(), flags),
        "bench-engine" => bench_engine::run(&root(), flags),
        "bench-postgres" => bench_server::run(&root(), Server::Postgres, flags),
        "bench-redis" => bench_server::run(&root(), Server::Redis, flags),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        unknown => Err(Exit::Usage(format!("there is no command `{unknown}`"))),
    }
}

fn tidy_alone(flags: &[String]) -> Result<(), Exit> {
    match flags.first() {
        Some(flag) => Err(Exit::Usage(format!("tidy takes no arguments, but got `{flag}`"))),
        None => Ok(tidy::run(&root())?),
    }
}

/// The repository's root, so that every command works from any folder in it.
///
/// Cargo's variable at run time comes first: two checkouts may share one target folder, and then the path that was
/// compiled in may be the other one's.
fn root() -> PathBuf {
    let xtask = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let mut root = PathBuf::from(xtask);
    root.pop();
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(arguments: &[&str]) -> String {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        match dispatch(&arguments) {
            Err(Exit::Usage(problem)) => problem,
            other => panic!("not refused as a wrong command line: {other:?}"),
        }
    }

    #[test]
    fn a_wrong_command_line_runs_nothing() {
        assert_eq!(refusal(&[]), "which command?");
        assert_eq!(refusal(&["tset"]), "there is no command `tset`");
        assert_eq!(refusal(&["tidy", "--fix"]), "tidy takes no arguments, but got `--fix`");
        assert!(refusal(&["test", "--only", "fmt,lint"]).contains("`lint`"));
        assert!(refusal(&["model", "--hours", "1"]).contains("`--hours`"));
        assert!(refusal(&["fuzz", "--hours", "1"]).contains("`--hours`"));
        assert!(refusal(&["ui", "--fast"]).contains("`--fast`"));
        assert!(refusal(&["ui", "--check", "--fast"]).contains("`--fast`"));
        assert!(refusal(&["deb", "--fast"]).contains("`--fast`"));
        assert!(refusal(&["bench-bus", "--fast"]).contains("`--fast`"));
        assert!(refusal(&["bench-engine", "--fast"]).contains("`--fast`"));
        assert!(refusal(&["bench-postgres", "--fast"]).contains("`--fast`"));
        assert!(refusal(&["bench-redis", "--fast"]).contains("`--fast`"));
    }
}
