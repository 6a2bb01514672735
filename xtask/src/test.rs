//! `cargo xtask test`: the README's test command, and all that CI runs.
//!
//! The steps go from the cheapest to the dearest and stop at the first failure. A tool that is missing is a failure
//! and never a skip: a run that ends well has checked everything.

use std::path::Path;
use std::time::Duration;

use crate::command::{self, Failure, cargo, cargo_beside_servers};
use crate::{Exit, browser, foreign, readme, tidy, ui};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Fmt,
    Clippy,
    Tidy,
    Ui,
    Readme,
    Tests,
    Foreign,
    Browser,
    Docs,
}

impl Step {
    const ALL: [Self; 9] = [
        Self::Fmt,
        Self::Clippy,
        Self::Tidy,
        Self::Ui,
        Self::Readme,
        Self::Tests,
        Self::Foreign,
        Self::Browser,
        Self::Docs,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Clippy => "clippy",
            Self::Tidy => "tidy",
            Self::Ui => "ui",
            Self::Readme => "readme",
            Self::Tests => "tests",
            Self::Foreign => "foreign",
            Self::Browser => "browser",
            Self::Docs => "docs",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.name() == name)
    }

    fn run(self, root: &Path) -> Result<(), Failure> {
        match self {
            Self::Fmt => fmt(root),
            Self::Clippy => clippy(root),
            Self::Tidy => tidy::run(root),
            Self::Ui => ui::check(root),
            Self::Readme => readme::run(root),
            Self::Tests => tests(root),
            Self::Foreign => foreign::run(root, &TEST_CLOCK),
            Self::Browser => browser::run(root, &TEST_CLOCK),
            Self::Docs => docs(root),
        }
    }
}

/// The black-box tests move the clock of the binary, which a release cannot.
const TEST_CLOCK: [&str; 2] = ["--features", "redrive-cli/test-clock"];

/// A step that has run.
struct Ran {
    step: Step,
    took: Duration,
    passed: bool,
}

pub(crate) fn run(root: &Path, flags: &[String]) -> Result<(), Exit> {
    let steps = chosen(flags).map_err(Exit::Usage)?;
    let (ran, outcome) = run_until_failure(&steps, |step| step.run(root));
    eprint!("\n{}", summary(&steps, &ran));
    Ok(outcome?)
}

/// The steps that the flags ask for, always in the order of [`Step::ALL`].
fn chosen(flags: &[String]) -> Result<Vec<Step>, String> {
    match flags {
        [] => Ok(Step::ALL.to_vec()),
        [only, names] if only == "--only" => {
            let wanted = names.split(',').map(step_named).collect::<Result<Vec<_>, _>>()?;
            Ok(Step::ALL.into_iter().filter(|step| wanted.contains(step)).collect())
        }
        [only] if only == "--only" => Err("--only needs the names of steps".to_owned()),
        [flag, ..] if flag != "--only" => Err(format!("test does not know `{flag}`")),
        [_, _, extra, ..] | [.., extra] => Err(format!("test does not know `{extra}`")),
    }
}

fn step_named(name: &str) -> Result<Step, String> {
    let known = Step::ALL.map(Step::name).join(", ");
    Step::named(name).ok_or_else(|| format!("there is no step `{name}`, only {known}"))
}

fn run_until_failure(
    steps: &[Step],
    mut work: impl FnMut(Step) -> Result<(), Failure>,
) -> (Vec<Ran>, Result<(), Failure>) {
    let mut ran = Vec::new();
    for &step in steps {
        eprintln!("\n== {}", step.name());
        let (outcome, took) = command::timed(|| work(step));
        eprintln!("== {}: {} after {}", step.name(), verdict(outcome.is_ok()), seconds(took));
        ran.push(Ran { step, took, passed: outcome.is_ok() });
        if let Err(cause) = outcome {
            return (ran, Err(Failure::Step { step: step.name(), cause: Box::new(cause) }));
        }
    }
    (ran, Ok(()))
}

/// One line a step, also for those that a failure kept from running.
fn summary(steps: &[Step], ran: &[Ran]) -> String {
    let line = |step: &Step| match ran.iter().find(|ran| ran.step == *step) {
        Some(ran) => format!("{:<8}{:<8}{:>9}\n", step.name(), verdict(ran.passed), seconds(ran.took)),
        None => format!("{:<8}not run\n", step.name()),
    };
    let total: Duration = ran.iter().map(|ran| ran.took).sum();
    let passed = ran.len() == steps.len() && ran.iter().all(|ran| ran.passed);
    let lines: String = steps.iter().map(line).collect();
    format!("{lines}{:<8}{:<8}{:>9}\n", "all", verdict(passed), seconds(total))
}

const fn verdict(passed: bool) -> &'static str {
    if passed { "ok" } else { "FAILED" }
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

fn fmt(root: &Path) -> Result<(), Failure> {
    needs(root, "fmt", "rustfmt", "rustup component add rustfmt")?;
    command::run(cargo(root, &["fmt", "--all", "--check"]))
}

fn clippy(root: &Path) -> Result<(), Failure> {
    needs(root, "clippy", "clippy", "rustup component add clippy")?;
    let all = ["clippy", "--workspace", "--all-targets", "--locked"];
    command::run(cargo(root, &[&all[..], &["--", "-D", "warnings"]].concat()))?;
    command::run(cargo(root, &[&all[..], &TEST_CLOCK, &["--", "-D", "warnings"]].concat()))
}

/// Nextest where it is installed, because it runs the test binaries at the same time; it leaves out the doc tests.
fn tests(root: &Path) -> Result<(), Failure> {
    let all = ["--workspace", "--locked"];
    if command::has_subcommand(root, "nextest") {
        let tests = [&["nextest", "run"][..], &all, &TEST_CLOCK].concat();
        command::run(cargo_beside_servers(root, &tests))?;
        command::run(cargo(root, &[&["test", "--doc"][..], &all].concat()))
    } else {
        command::run(cargo_beside_servers(root, &[&["test"][..], &all, &TEST_CLOCK].concat()))
    }
}

fn docs(root: &Path) -> Result<(), Failure> {
    let mut command = cargo(root, &["doc", "--workspace", "--no-deps", "--locked"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    command::run(command)
}

fn needs(root: &Path, subcommand: &str, tool: &'static str, remedy: &'static str) -> Result<(), Failure> {
    if command::has_subcommand(root, subcommand) {
        Ok(())
    } else {
        Err(Failure::NotInstalled { tool, remedy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn without_flags_every_step_runs() {
        assert_eq!(chosen(&[]), Ok(Step::ALL.to_vec()));
    }

    #[test]
    fn only_keeps_the_order_of_the_steps() {
        assert_eq!(chosen(&flags(&["--only", "tidy,fmt"])), Ok(vec![Step::Fmt, Step::Tidy]));
    }

    #[test]
    fn flags_that_mean_nothing_are_refused() {
        assert!(chosen(&flags(&["--only"])).is_err());
        assert!(chosen(&flags(&["--only", "fmt,"])).is_err());
        assert!(chosen(&flags(&["--only", "fmt", "clippy"])).is_err());
        assert!(chosen(&flags(&["--fast"])).is_err());
        assert!(chosen(&flags(&["--fast", "fmt"])).is_err());
    }

    #[test]
    fn the_first_failure_stops_the_run_and_is_named() {
        let mut started = Vec::new();
        let (ran, outcome) = run_until_failure(&Step::ALL, |step| {
            started.push(step);
            if step == Step::Clippy { Err(Failure::Untidy { findings: 2 }) } else { Ok(()) }
        });
        assert_eq!(started, [Step::Fmt, Step::Clippy]);
        let failure = outcome.expect_err("clippy failed");
        assert_eq!(failure.to_string(), "step `clippy` failed: 2 findings");

        let summary = summary(&Step::ALL, &ran);
        assert!(summary.contains("clippy  FAILED"), "{summary}");
        assert!(summary.contains("docs    not run"), "{summary}");
        assert!(summary.contains("all     FAILED"), "{summary}");
    }

    #[test]
    fn a_run_without_failure_says_ok() {
        let (ran, outcome) = run_until_failure(&Step::ALL, |_| Ok(()));
        assert!(outcome.is_ok());
        assert!(!summary(&Step::ALL, &ran).contains("FAILED"));
    }
}
