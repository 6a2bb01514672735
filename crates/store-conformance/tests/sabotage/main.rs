//! The suite can fail: each sabotage of the reference store is caught by the rule that is there for it.
//!
//! A sabotage is a wrapper around the reference that does one thing wrong; nothing in the product has a switch for
//! it. Each must break the rule named beside it, and must be found by the random histories too, unless it says
//! why they cannot see it.

mod acts;
mod wrap;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use redrive_store_conformance::{Finding, Memory, Subject, check, model, rules};

use acts::{Act, ByHistories, all};

/// Histories that are tried before a sabotage counts as not found.
const HISTORIES_MAX: u64 = 400;

fn main() -> ExitCode {
    let mut trials: Vec<Trial> = vec![Trial::test("the_readme_counts_right", the_readme_counts_right)];
    for act in all() {
        let rule = act.rule;
        trials.push(Trial::test(format!("{}::is_caught_by_its_rule", act.name), move || caught(&act, rule)));
    }
    for act in all() {
        let trial = match act.histories {
            ByHistories::Found => {
                Trial::test(format!("{}::is_found_by_histories", act.name), move || found(&act))
            }
            ByHistories::NotSeen => {
                Trial::test(format!("{}::is_not_seen_by_histories", act.name), move || not_seen(&act))
            }
        };
        trials.push(trial);
    }
    let mut arguments = Arguments::from_args();
    // The panics of rules that are meant to break are taken as findings, by whichever thread.
    arguments.test_threads.get_or_insert(1);
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn the_readme_counts_right() -> Result<(), Failed> {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md"))?;
    for claim in [format!("{} rules", rules().len()), format!("{} sabotaged stores", all().len())] {
        if !readme.contains(&claim) {
            return Err(format!("the README does not say: {claim}").into());
        }
    }
    Ok(())
}

fn caught(act: &Act, name: &str) -> Result<(), Failed> {
    let rules = rules();
    let rule = rules.iter().find(|rule| rule.name == name).ok_or("there is no such rule")?;
    match check(&Memory, rule) {
        Finding::Kept => {}
        other => return Err(format!("the reference itself: {other:?}").into()),
    }
    match check(&act.subject(), rule) {
        Finding::Broken(_) => Ok(()),
        other => Err(format!("not caught by {name}: {other:?}").into()),
    }
}

/// What this file says about the histories is true, too.
fn not_seen(act: &Act) -> Result<(), Failed> {
    match model::explore(&act.subject(), 1, |tally| tally.histories >= HISTORIES_MAX / 10) {
        Ok(_) => Ok(()),
        Err(counterexample) => Err(format!("found after all: {}", counterexample.reason).into()),
    }
}

fn found(act: &Act) -> Result<(), Failed> {
    let subject: &dyn Subject = &act.subject();
    match model::explore(subject, 1, |tally| tally.histories >= HISTORIES_MAX) {
        Err(counterexample) => {
            let again = model::explore(subject, counterexample.seed, |tally| tally.histories > 0);
            if again.is_ok() { Err("the seed does not replay".into()) } else { Ok(()) }
        }
        Ok(tally) => Err(format!("not found in {} histories, {} steps", tally.histories, tally.steps).into()),
    }
}
