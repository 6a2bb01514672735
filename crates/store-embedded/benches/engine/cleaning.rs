//! What a commit waits for while the cleaner works.
//!
//! Both kinds of commit come from one store, so that its files are the same: after each commit it is asked whether it
//! cleaned. It holds messages that only the cleaner touches, and cleans as long as it has more waste than those; some
//! more of them stop it, and go to files that it has just cleaned.

use std::time::Duration;

use redrive_store::LaneChoice;

use crate::Context;
use crate::caller::Caller;
use crate::measure::{Latencies, Stopwatch, micros, timed};
use crate::progress::Progress;
use crate::report::{Bars, Limit, Table};
use crate::sustained::{Until, sustained};

const BODY_BYTES: usize = 1_024;
const BATCH: usize = 16;

/// How many batches are left out of the figures when the cleaner is to begin again, and how large they are.
const HURRY: (usize, usize) = (16, 256);

/// Commits by whether the cleaner worked in them.
#[derive(Default)]
struct Commits {
    without: Latencies,
    cleaning: Latencies,
    cleaned_before: u64,
    cleaned_last: bool,
}

pub(crate) fn run(context: &Context, bars: &mut Bars) {
    let scale = context.scale;
    let mut caller = Caller::open(&context.place.fresh("cleaning"), scale, BODY_BYTES);
    caller.load_delayed(scale.carried);
    caller.load("messages of standing backlog", scale.backlog / 10, |_, _| ());
    let warm_up = Until { time: scale.short, full_pass: Some(scale.patience) };
    sustained(&mut caller, scale, "warming up, until the cleaner has been round", 256, warm_up);
    let mut table = Table::new(&[
        "round",
        "commits",
        "p50 us",
        "p99.9 us",
        "cleaning commits",
        "p50 us",
        "p99.9 us",
        "ratio",
    ]);
    let mut ratios = Vec::new();
    for number in 1..=scale.rounds {
        ratios.push(round(context, &mut caller, number, &mut table));
    }
    println!("commits of {BATCH} x 1 KiB (enqueue, lease and ack in turn), {} to carry", scale.carried);
    table.print();
    bars.judge("commit_p999_cleaning", &ratios, Limit::AtMost(3.0));
    caller.close();
    context.place.clear("cleaning");
}

fn round(context: &Context, caller: &mut Caller, number: usize, table: &mut Table) -> f64 {
    let commits_wanted = context.scale.commits;
    let mut progress = Progress::new(format!("commits with and without cleaning, round {number}"));
    let mut commits = Commits { cleaned_before: caller.usage().cleaned_bytes, ..Commits::default() };
    let watch = Stopwatch::start();
    while commits.fewest() < commits_wanted && watch.elapsed() < context.scale.patience {
        if commits.without.len() < commits_wanted && commits.cleaning.len() >= commits_wanted {
            calm(caller, &mut commits, context);
        } else if commits.without.len() >= commits_wanted && !commits.cleaned_last {
            (0..HURRY.0).for_each(|_| caller.life_cycle(HURRY.1));
            commits.cleaned_before = caller.usage().cleaned_bytes;
        }
        commits.time(caller, |caller| caller.enqueue(BATCH));
        let messages = commits.time(caller, |caller| caller.lease(BATCH, LaneChoice::Queue));
        commits.time(caller, |caller| caller.ack(&messages));
        progress.at(|| format!("{} without, {} cleaning", commits.without.len(), commits.cleaning.len()));
    }
    commits.row(number, table)
}

/// More that is needed, if the cleaner still works: against that, the waste is not worth cleaning.
fn calm(caller: &mut Caller, commits: &mut Commits, context: &Context) {
    if commits.cleaned_last {
        caller.load_delayed(context.scale.carried / 20);
        commits.cleaned_before = caller.usage().cleaned_bytes;
    }
}

impl Commits {
    /// Times one commit and puts it where it belongs.
    fn time<T>(&mut self, caller: &mut Caller, commit: impl FnOnce(&mut Caller) -> T) -> T {
        let (result, latency) = timed(|| commit(caller));
        let cleaned = caller.usage().cleaned_bytes;
        self.cleaned_last = cleaned > self.cleaned_before;
        let kind = if self.cleaned_last { &mut self.cleaning } else { &mut self.without };
        kind.push(latency);
        self.cleaned_before = cleaned;
        result
    }

    fn fewest(&self) -> usize {
        self.without.len().min(self.cleaning.len())
    }

    fn row(&mut self, number: usize, table: &mut Table) -> f64 {
        let (calm, busy) = (self.without.quantile(999), self.cleaning.quantile(999));
        let ratio = if calm.is_zero() || busy.is_zero() { f64::NAN } else { busy.div_duration_f64(calm) };
        let us = |latency: Duration| format!("{:.0}", micros(latency));
        table.row(&[
            &number,
            &self.without.len(),
            &us(self.without.quantile(500)),
            &us(calm),
            &self.cleaning.len(),
            &us(self.cleaning.quantile(500)),
            &us(busy),
            &format!("{ratio:.2}"),
        ]);
        ratio
    }
}
