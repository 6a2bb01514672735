//! The bench, shrunk: that it runs and judges every bar. How fast anything is, is not looked at.

#[path = "../benches/redis/main.rs"]
#[expect(dead_code, reason = "the command line is the bench's own")]
mod bench;

// Under these names the bench's files know each other.
use bench::{
    Context, NAME, arguments, bare, caller, host, life_cycle, machine, measure, progress, report, turns,
};

#[test]
fn a_quick_run_judges_every_bar() {
    let words = ["--quick"].map(str::to_owned).into_iter();
    let arguments = arguments::Arguments::parse(words, &[]).expect("good flags");
    let bars = format!("{:?}", bench::figures(&arguments));
    for name in ["life_cycle_100", "single_64", "fairness_cost"] {
        assert!(bars.contains(&format!("name: \"{name}\"")), "{name} is not among {bars}");
    }
}
