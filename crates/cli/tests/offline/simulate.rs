//! `redrive simulate`.

use std::path::Path;

use serde_json::Value;

use crate::run::{Ran, redrive};

fn simulate(flags: &str) -> Ran {
    let mut arguments = vec!["simulate"];
    arguments.extend(flags.split_whitespace());
    redrive(Path::new("/"), &arguments)
}

const DESIGN: &str = "--base-delay 1s --multiplier 2 --max-delay 30s --jitter none --max-attempts 7";
const LOAD: &str =
    "--failure-rate 0.3 --arrival-rate 100 --workers 20 --run-time 100ms --outage 60s --for 10m";

#[test]
fn the_schedule_of_the_design() {
    assert_eq!(
        simulate(DESIGN).ok(),
        "ATTEMPT  STARTS  DELAY AFTER IT\n\
         1        0s      1s\n\
         2        1s      2s\n\
         3        3s      4s\n\
         4        7s      8s\n\
         5        15s     16s\n\
         6        31s     30s\n\
         7        1m1s    dead\n\
         \n\
         Dead after 7 failures, 1m1s after the first.\n"
    );
}

#[test]
fn jitter_shows_as_a_band() {
    let text = simulate("--jitter 0.1 --max-attempts 2").ok();
    assert!(text.contains("1        0s               1s (900ms–1.1s)\n"), "{text}");
    assert!(text.contains("2        1s (900ms–1.1s)  dead\n"), "{text}");
    let full = simulate("--jitter full --max-attempts 2 --json").json();
    let delay = &full["schedule"]["attempts"][0]["delay"];
    assert_eq!((&delay["low_ms"], &delay["high_ms"]), (&Value::from(0), &Value::from(1_000)));
    assert_eq!(full["simulation"], Value::Null);
}

#[test]
fn what_never_dies_and_what_dies_late_is_told() {
    let text = simulate("--max-attempts none").ok();
    assert!(text.ends_with("The first 50 attempts: there is no last one.\nNever dead.\n"), "{text}");
    let text = simulate("--max-attempts 4294967295 --jitter none --max-delay none").ok();
    assert!(text.contains("4294967245 more attempts follow those 50.\n"), "{text}");
    assert_eq!(simulate("--max-attempts 1").ok().lines().last(), Some("Dead after the first failure."));
}

#[test]
fn a_queue_under_load_is_told_and_the_same_seed_says_the_same() {
    let ran = simulate(LOAD).ok();
    for line in
        ["outage", "arrived", "handed out", "retries", "utilisation", "fresh share", "wait of fresh work"]
    {
        assert!(ran.lines().any(|said| said.starts_with(line)), "{line}: {ran}");
    }
    assert!(ran.contains("80.0 % of ") && ran.contains("0.70 outside of the outage"), "{ran}");
    assert!(ran.lines().any(|line| line.starts_with("backlog     │") && line.contains('█')), "{ran}");
    assert_eq!(ran, simulate(LOAD).ok());
    assert_ne!(ran, simulate(&format!("{LOAD} --seed 2")).ok());
}

#[test]
fn programs_get_numbers_that_add_up() {
    let document = simulate(&format!("{LOAD} --json")).json();
    let report = &document["simulation"];
    let number = |name: &str| report[name].as_u64().unwrap_or_else(|| panic!("{name}: {report}"));
    let there = ["done", "dead", "ready", "delayed", "running"].map(number).iter().sum::<u64>();
    assert_eq!(number("arrived"), there);
    assert_eq!(report["drains"], "drained");
    assert_eq!(report["chart"].as_array().unwrap().len(), 60);
    let never = simulate("--arrival-rate 100 --workers 5 --for 1m --json").json();
    assert_eq!(never["simulation"]["drains"], "never");
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    for (flags, said) in [
        ("--base-delay 5", "has no unit: write 5s for seconds"),
        ("--max-delay soon", "or none for no limit"),
        ("--multiplier 0.5", "--multiplier: must lie between 1 and 1000"),
        ("--multiplier NaN", "--multiplier: must lie between 1 and 1000"),
        ("--jitter 2", "must lie between 0 and 1"),
        ("--jitter some", "must be none, full, or a share such as 0.1"),
        ("--max-attempts 0", "--max-attempts"),
        ("--base-delay 36500d", "--base-delay: must lie between"),
        ("--arrival-rate 10", "--workers"),
        ("--workers 10", "--arrival-rate"),
        ("--failure-rate 0.1", "--arrival-rate"),
        ("--arrival-rate 10 --workers 0", "--workers: must lie between 1 and 100000"),
        ("--arrival-rate 0 --workers 1", "--arrival-rate: must be above 0"),
        ("--arrival-rate inf --workers 1", "--arrival-rate: must be above 0"),
        ("--arrival-rate 1e9 --workers 1", "2000000 messages are simulated at most"),
        ("--arrival-rate 1 --workers 1 --failure-rate 1.5", "--failure-rate: must lie between 0 and 1"),
        ("--arrival-rate 1 --workers 1 --run-time 0s", "--run-time: must lie between 1ms and 30d"),
        ("--arrival-rate 1 --workers 1 --for 31d", "--for: must lie between 1ms and 30d"),
        ("--arrival-rate 1 --workers 1 --retry-share 7", "--retry-share: must lie between 0 and 1"),
        ("--arrival-rate 1 --workers 1 --outage-at 5s", "--outage"),
    ] {
        simulate(flags).failed(2, said);
    }
}

#[test]
fn what_would_take_too_long_ends_with_a_word() {
    let flags = "--arrival-rate 2000 --workers 100000 --failure-rate 1 --max-attempts none --base-delay 0s --run-time 1ms --for 10m";
    simulate(flags).failed(2, "--for: these are more than 10000000 attempts");
}
