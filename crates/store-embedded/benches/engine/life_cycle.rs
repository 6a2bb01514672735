//! Sustained life cycles: enqueue, lease, ack, 1 KiB each, with a standing backlog and one caller.

use crate::Context;
use crate::bare::Bare;
use crate::caller::Caller;
use crate::measure::{micros, timed};
use crate::report::{Bars, Limit, Table};
use crate::sustained::{Arm, HEADINGS, Round, Until, bare_beside, row, shape, sustained};

const BODY_BYTES: usize = 1_024;

/// A batch, and what of the bare loop's rate the engine must reach with it.
const BATCHES: [(usize, f64); 2] = [(256, 0.6), (1_024, 0.4)];

/// The CPU that a life cycle may cost, in microseconds.
const CPU_MAX: f64 = 10.0;

pub(crate) fn run(context: &Context, bars: &mut Bars) {
    let scale = context.scale;
    let mut caller = Caller::open(&context.place.fresh("life_cycle"), scale, BODY_BYTES);
    caller.load("messages of standing backlog", scale.backlog, |_, _| ());
    let warm_up = Until { time: scale.short, full_pass: Some(scale.patience) };
    sustained(&mut caller, scale, "warming up, until the cleaner has been round", 256, warm_up);
    let mut raw = bare_beside(&caller, &context.place.fresh("bare"), scale.segment_bytes);
    println!("1 KiB, {} in the backlog, one caller; 1,024 are two calls of 512 at a time", scale.backlog);
    for (batch, share_min) in BATCHES {
        let rounds = rounds(context, &mut caller, &mut raw, batch);
        let ratios: Vec<f64> = rounds.iter().map(|(engine, bare)| engine.rate() / bare.rate()).collect();
        let cpu: Vec<f64> = rounds.iter().map(|(engine, _)| engine.cpu()).collect();
        bars.judge(format!("life_cycle_{batch}"), &ratios, Limit::AtLeast(share_min));
        bars.judge(format!("cpu_per_life_cycle_{batch}"), &cpu, Limit::AtMost(CPU_MAX));
    }
    let making = 200_000;
    let took = timed(|| (0..making / 1_000).for_each(|_| caller.only_make(1_000))).1;
    println!(
        "of the CPU, making the messages is the caller's own: {:.2} us",
        micros(took) / f64::from(making)
    );
    caller.close();
    context.place.clear("life_cycle");
    context.place.clear("bare");
}

/// Engine and bare loop in turn, slice by slice.
fn rounds(context: &Context, caller: &mut Caller, raw: &mut Bare, batch: usize) -> Vec<(Round, Round)> {
    let scale = context.scale;
    let until = Until { time: scale.sustained, full_pass: Some(scale.patience) };
    let mut table = Table::new(&HEADINGS);
    let mut rounds = Vec::new();
    let shape = shape(caller, batch);
    for number in 1..=scale.rounds {
        let what = format!("batch {batch}, round {number}");
        let mut arm = Arm::new(caller, scale, &what, batch, until);
        let mut beside = Round::default();
        while !arm.is_over() {
            let slice = arm.slice(caller, Caller::life_cycle);
            beside = beside.plus(&slice.beside(raw, &shape));
        }
        let engine = arm.done();
        row(&mut table, &format!("engine {batch}"), number, &engine);
        row(&mut table, &format!("bare {batch}"), number, &beside);
        rounds.push((engine, beside));
    }
    table.print();
    rounds
}
