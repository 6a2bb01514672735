//! What fairness costs: ten keys beside a hundred thousand, with the same backlog.

use redrive_core::lifecycle::Draft;
use redrive_core::message::FairnessKey;

use crate::Context;
use crate::caller::Caller;
use crate::progress::Progress;
use crate::report::{Bars, Limit, Table};
use crate::turns::{Done, HEADINGS, Worker, row, turn};

const BODY_BYTES: usize = 1_024;
const BATCH: usize = 100;
const CALLERS: u64 = 4;
const FEW: u64 = 10;

/// By which the keys of the backlog are walked, and by which those of the life cycles: coprime to every number of keys
/// here, so that a walk meets each key once, and different, so that no arm is served in the order of its rows.
const LOAD_STRIDE: u64 = 611_953;
const CYCLE_STRIDE: u64 = 377_477;

struct Tenants {
    caller: Caller,
    keys: u64,
}

impl Worker for Tenants {
    async fn work(&mut self) -> u64 {
        let keys = self.keys;
        self.caller.life_cycle_with(BATCH, move |n, draft| set(draft, keys, n, CYCLE_STRIDE)).await;
        BATCH as u64
    }
}

pub(crate) fn run(context: &Context, bars: &mut Bars) {
    let many_keys = context.scale.keys;
    let mut few = load(context, "few", FEW);
    let mut many = load(context, "many", many_keys);
    context.runtime.block_on(context.server.settle());
    let mut table = Table::new(&HEADINGS);
    let mut costs = Vec::new();
    for number in 1..=context.scale.rounds {
        let mut progress = Progress::new(format!("fairness, round {number}"));
        let (mut with_few, mut with_many) = (Done::default(), Done::default());
        for turns in 1..=context.scale.turns {
            with_few += turn(context, &mut few);
            with_many += turn(context, &mut many);
            progress.at(|| format!("turn {turns} of {}", context.scale.turns));
        }
        row(&mut table, &format!("{FEW} keys"), number, &with_few);
        row(&mut table, &format!("{many_keys} keys"), number, &with_many);
        costs.push(with_few.rate() / with_many.rate());
    }
    println!(
        "1 KiB, {} in the backlog; {CALLERS} callers, {BATCH} at a time; the cost of {many_keys} keys is the time of a \
         life cycle with them over that with {FEW}",
        context.scale.keys_backlog
    );
    table.print();
    bars.judge("fairness_cost", &costs, Limit::AtMost(1.2));
    for worker in few.iter().chain(&many) {
        worker.caller.close();
    }
}

fn load(context: &Context, name: &str, keys: u64) -> Vec<Tenants> {
    let connections = usize::try_from(CALLERS).expect("a few");
    let mut caller = context.runtime.block_on(Caller::open(&context.server, name, connections, BODY_BYTES));
    let backlog = context.scale.keys_backlog;
    context.runtime.block_on(caller.load(backlog, |n, draft| set(draft, keys, n, LOAD_STRIDE)));
    caller.others(CALLERS).into_iter().map(|caller| Tenants { caller, keys }).collect()
}

fn set(draft: &mut Draft, keys: u64, n: u64, stride: u64) {
    let number = (n * stride) % keys;
    draft.spec.fairness_key = FairnessKey::new(format!("tenant-{number:07}")).expect("a good key");
}
