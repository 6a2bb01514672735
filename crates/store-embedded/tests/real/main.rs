//! Faults that are real: processes are killed, file systems lose their power or are full, clocks are set.
//!
//! The process that is killed is this program itself, started again. It says what it asks before every call and what
//! it was told after it, in a pipe, so that what it was told is known whatever becomes of it. A test that needs root
//! or a loop device and has none says "not run" and why; that is not "passed".

mod caller;
mod clock;
mod full;
mod history;
mod kill;
mod line;
mod look;
mod owner;
mod power;
mod series;
mod victim;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use redrive_test_servers::LoopFs;

type Test = fn() -> Result<(), Failed>;

fn main() -> ExitCode {
    victim::work_if_told();
    let mut arguments = Arguments::from_args();
    // A child has every lock of its parent until it runs its own program, so one test could lock another one out.
    arguments.test_threads.get_or_insert(1);
    let anywhere: [(&str, Test); 4] = [
        (
            "a_killed_process_loses_nothing_that_was_acknowledged",
            kill::a_killed_process_loses_nothing_that_was_acknowledged,
        ),
        (
            "a_second_process_is_refused_until_the_first_is_dead",
            owner::a_second_process_is_refused_until_the_first_is_dead,
        ),
        (
            "a_wall_clock_that_is_set_ends_no_lease_early_and_loses_nothing",
            clock::a_wall_clock_that_is_set_ends_no_lease_early_and_loses_nothing,
        ),
        ("timers_on_the_wall_clock_are_caught", clock::timers_on_the_wall_clock_are_caught),
    ];
    let mounting: [(&str, Test); 3] = [
        (
            "a_power_cut_loses_nothing_that_was_acknowledged",
            power::a_power_cut_loses_nothing_that_was_acknowledged,
        ),
        ("without_syncing_a_power_cut_is_seen_to_lose", power::without_syncing_a_power_cut_is_seen_to_lose),
        (
            "a_full_disk_refuses_enqueues_only_and_recovers_by_itself",
            full::a_full_disk_refuses_enqueues_only_and_recovers_by_itself,
        ),
    ];
    let mut trials: Vec<_> = anywhere.into_iter().map(|(name, test)| Trial::test(name, test)).collect();
    let missing = if arguments.list { None } else { LoopFs::missing() };
    trials.extend(mounting.into_iter().map(|(name, test)| match missing.clone() {
        None => Trial::test(name, test),
        Some(reason) => not_run(name, &reason),
    }));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Shown as ignored, with the reason; asked for all the same, it fails.
fn not_run(name: &str, reason: &str) -> Trial {
    let reason = format!("not run: {reason}");
    let fails = reason.clone();
    Trial::test(name, move || Err(fails.into())).with_kind(reason).with_ignored_flag(true)
}
