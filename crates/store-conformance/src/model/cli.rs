//! The model tests as a program: for the test command, for `cargo xtask model`, and to replay a seed.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use super::{Counterexample, Tally, explore};
use crate::subject::Subject;

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Plan {
    /// After at least so many steps.
    Steps(usize),
    /// After so much time.
    Minutes(f64),
    /// After the history of one seed.
    Seed(u64),
}

const USAGE: &str = "usage: model [--steps N | --minutes N | --seed N|0xN]";

/// Runs histories until the plan is fulfilled; `steps` is the plan where no argument names another.
pub fn main(subject: &dyn Subject, steps: usize) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // nextest asks every test binary for a list of its tests; this one is a single test.
    if arguments.iter().any(|argument| argument == "--list") {
        if !arguments.iter().any(|argument| argument == "--ignored") {
            println!("histories: test");
        }
        return ExitCode::SUCCESS;
    }
    let Some(plan) = plan(&arguments, steps) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    report(&run(subject, plan))
}

fn plan(arguments: &[String], steps: usize) -> Option<Plan> {
    let named = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).map(String::as_str)
    };
    if let Some(seed) = named("--seed") {
        let hex = seed.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
        return hex.unwrap_or_else(|| seed.parse()).ok().map(Plan::Seed);
    }
    if let Some(minutes) = named("--minutes") {
        return minutes
            .parse()
            .ok()
            .filter(|minutes: &f64| minutes.is_finite() && *minutes > 0.0)
            .map(Plan::Minutes);
    }
    match named("--steps") {
        Some(steps) => steps.parse().ok().map(Plan::Steps),
        None => Some(Plan::Steps(steps)),
    }
}

struct Report {
    store: String,
    first: u64,
    outcome: Result<Tally, Box<Counterexample>>,
}

#[expect(clippy::disallowed_methods, reason = "a long run starts anywhere and ends by the clock on the wall")]
fn run(subject: &dyn Subject, plan: Plan) -> Report {
    let start = std::time::Instant::now();
    let first = match plan {
        Plan::Seed(seed) => seed,
        Plan::Steps(_) => 1,
        Plan::Minutes(_) => {
            let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            since.map_or(1, |since| since.as_secs() << 20)
        }
    };
    let outcome = explore(subject, first, |so_far| {
        progress(so_far);
        match plan {
            Plan::Seed(_) => so_far.histories > 0,
            Plan::Steps(enough) => so_far.steps >= enough,
            Plan::Minutes(minutes) => start.elapsed().as_secs_f64() >= minutes * 60.0,
        }
    });
    Report { store: subject.name().to_owned(), first, outcome }
}

/// Shows a person that it is alive.
fn progress(tally: &Tally) {
    let mut err = std::io::stderr();
    if err.is_terminal() && tally.histories.is_multiple_of(64) {
        // A progress line that cannot be written is no reason to stop.
        drop(
            write!(err, "\r{} histories, {} steps", tally.histories, tally.steps).and_then(|()| err.flush()),
        );
    }
}

fn report(report: &Report) -> ExitCode {
    let Report { store, first, outcome } = report;
    match outcome {
        Ok(Tally { histories, steps, applied }) => {
            println!(
                "{store}: {histories} histories, {steps} steps from seed {first:#x} on, none broke a rule"
            );
            let applied: Vec<String> =
                applied.iter().map(|(verb, messages)| format!("{verb} {messages}")).collect();
            println!("messages by verb: {}", applied.join(", "));
            ExitCode::SUCCESS
        }
        Err(counterexample) => {
            let Counterexample { seed, reason, steps } = counterexample.as_ref();
            println!("{store}: the history of seed {seed:#x} broke a rule");
            println!("{reason}");
            println!("the shortest history that does, {} steps:", steps.len());
            for step in steps {
                println!("  {step}");
            }
            println!("replay it with: cargo xtask model --seed {seed:#x}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Option<Plan> {
        plan(&arguments.iter().map(ToString::to_string).collect::<Vec<_>>(), 7)
    }

    #[test]
    fn a_plan_is_read_from_the_arguments() {
        assert_eq!(parsed(&[]), Some(Plan::Steps(7)));
        assert_eq!(
            parsed(&["--exact", "histories", "--nocapture"]),
            Some(Plan::Steps(7)),
            "as nextest calls it"
        );
        assert_eq!(parsed(&["--minutes", "0.5"]), Some(Plan::Minutes(0.5)));
        assert_eq!(parsed(&["--seed", "0x1f"]), Some(Plan::Seed(31)));
        assert_eq!(parsed(&["--seed", "31"]), Some(Plan::Seed(31)));
        for bad in [&["--minutes", "-1"][..], &["--minutes", "NaN"], &["--seed", "0xz"], &["--steps", "many"]]
        {
            assert_eq!(parsed(bad), None, "{bad:?}");
        }
    }
}
