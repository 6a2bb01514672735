//! What messages cost that nobody touches: delayed and dead ones, which only the cleaner meets.

use crate::Context;
use crate::caller::Caller;
use crate::report::{Bars, Limit, Table};
use crate::sustained::{Arm, HEADINGS, Until, row, sustained};

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
        let arm = |caller: &Caller, name: &str| {
            Arm::new(caller, scale, &format!("{name} cold messages, round {number}"), BATCH, until)
        };
        let (mut plain, mut cold) = (arm(&without, "without"), arm(&with, "with"));
        for turn in 0_u32.. {
            if plain.is_over() && cold.is_over() {
                break;
            }
            // The pass over cold messages is the longer one; the other arm keeps looking in until that is done.
            if !plain.is_over() || turn % 4 == 0 {
                plain.slice(&mut without, Caller::life_cycle);
            }
            cold.slice(&mut with, Caller::life_cycle);
        }
        let (plain, cold) = (plain.done(), cold.done());
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
        sustained(caller, context.scale, what, BATCH, until);
        if caller.usage().cleaned_segments > before {
            return;
        }
    }
}
