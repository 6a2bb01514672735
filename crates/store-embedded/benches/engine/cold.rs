//! What messages cost that nobody touches: delayed and dead ones, which only the cleaner meets.

use crate::Context;
use crate::caller::Caller;
use crate::report::{Bars, Limit, Table};
use crate::sustained::{HEADINGS, Until, row, sustained};

/// The cold messages have bodies of the same size as those of the life cycles.
const BODY_BYTES: usize = 1_024;
const BATCH: usize = 256;

pub(crate) fn run(context: &Context, bars: &mut Bars) {
    let scale = context.scale;
    let mut without = store(context, "without", 0);
    let mut with = store(context, "with", scale.cold);
    let until = Until { time: scale.sustained, full_pass: Some(scale.patience) };
    let mut table = Table::new(&HEADINGS);
    let (mut cpu, mut bytes) = (Vec::new(), Vec::new());
    for number in 1..=scale.rounds {
        let name = |arm: &str| format!("{arm} cold messages, round {number}");
        let plain = sustained(&mut without, &name("without"), BATCH, until, Caller::life_cycle);
        let cold = sustained(&mut with, &name("with"), BATCH, until, Caller::life_cycle);
        row(&mut table, &"without", number, &plain);
        row(&mut table, &"with", number, &cold);
        cpu.push(cold.cpu() / plain.cpu());
        bytes.push(cold.bytes() / plain.bytes());
    }
    println!(
        "{} delayed and as many dead beside {} in the backlog, 1 KiB all of them",
        scale.cold, scale.backlog
    );
    table.print();
    bars.judge("cold_cpu", &cpu, Limit::AtMost(1.1));
    bars.judge("cold_bytes", &bytes, Limit::AtMost(2.0));
    for (caller, name) in [(without, "without"), (with, "with")] {
        caller.close();
        context.place.clear(name);
    }
}

/// A store that has been busy for long enough to clean: the first pass over fresh files is not like the others.
fn store(context: &Context, name: &str, cold: u64) -> Caller {
    let scale = context.scale;
    let mut caller = Caller::open(&context.place.fresh(name), scale, BODY_BYTES);
    caller.load_dead(cold);
    caller.load_delayed(cold);
    caller.load("messages of standing backlog", scale.backlog, |_, _| ());
    let segments = caller.usage().segments;
    let what = format!("{name} cold messages, warming up until the cleaner has begun ({segments} segments)");
    warm_up(&mut caller, &what, context);
    caller
}

fn warm_up(caller: &mut Caller, what: &str, context: &Context) {
    let before = caller.usage().cleaned_segments;
    let until = Until { time: context.scale.short, full_pass: None };
    for _ in 0..20 {
        sustained(caller, what, BATCH, until, Caller::life_cycle);
        if caller.usage().cleaned_segments > before {
            return;
        }
    }
}
