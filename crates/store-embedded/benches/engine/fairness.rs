//! What fairness costs: a few active keys beside a million of them, with the same backlog.

use redrive_core::lifecycle::Draft;
use redrive_core::message::FairnessKey;
use redrive_store::LaneChoice;

use crate::Context;
use crate::caller::Caller;
use crate::report::{Bars, Limit, Table};
use crate::sustained::{Arm, HEADINGS, Until, row};

/// Small, because the load is what takes the time; the bytes are the same in both arms.
const BODY_BYTES: usize = 100;
const BATCH: usize = 256;
const FEW: u64 = 10;

/// By which the keys of the backlog are walked, and by which those of the life cycles: coprime to every number of keys
/// here, so that a walk meets each key once, and different, so that no arm is served in the order of its memory.
const LOAD_STRIDE: u64 = 611_953;
const CYCLE_STRIDE: u64 = 377_477;

/// A store and how many keys its messages have.
struct Tenants {
    caller: Caller,
    keys: u64,
}

pub(crate) fn run(context: &Context, bars: &mut Bars) {
    let scale = context.scale;
    let mut few = Tenants::load(context, "few", FEW);
    let mut many = Tenants::load(context, "many", scale.fairness_keys);
    let mut table = Table::new(&HEADINGS);
    let mut ratios = Vec::new();
    for number in 1..=scale.rounds {
        let (mut a, mut b) = (few.arm(context, number), many.arm(context, number));
        while !(a.is_over() && b.is_over()) {
            few.slice(&mut a);
            many.slice(&mut b);
        }
        let (few, many) = (a.done(), b.done());
        row(&mut table, &format!("{FEW} keys"), number, &few);
        row(&mut table, &format!("{} keys", scale.fairness_keys), number, &many);
        ratios.push(many.cpu() / few.cpu());
    }
    println!("{BODY_BYTES} bytes, {} in the backlog, batches of {BATCH}", scale.fairness_backlog);
    table.print();
    bars.judge("fairness_cpu", &ratios, Limit::AtMost(1.25));
    for (tenants, name) in [(few, "few"), (many, "many")] {
        tenants.caller.close();
        context.place.clear(name);
    }
}

impl Tenants {
    fn load(context: &Context, name: &str, keys: u64) -> Self {
        let mut caller = Caller::open(&context.place.fresh(name), context.scale, BODY_BYTES);
        let what = format!("messages of {keys} keys");
        caller.load(&what, context.scale.fairness_backlog, |n, draft| set(draft, keys, n, LOAD_STRIDE));
        Self { caller, keys }
    }

    fn arm(&self, context: &Context, number: usize) -> Arm {
        let what = format!("{} keys, round {number}", self.keys);
        let until = Until { time: context.scale.short, full_pass: None };
        Arm::new(&self.caller, context.scale, &what, BATCH, until)
    }

    fn slice(&mut self, arm: &mut Arm) {
        let keys = self.keys;
        arm.slice(&mut self.caller, |caller, batch| {
            caller.enqueue_with(batch, |n, draft| set(draft, keys, n, CYCLE_STRIDE));
            let messages = caller.lease(batch, LaneChoice::Queue);
            caller.ack(&messages);
        });
    }
}

/// Gives the draft a key that was just made, as one is that came with a request: a key of a caller's own list would be
/// out of the caches, and the engine would be charged for the caller's misses.
fn set(draft: &mut Draft, keys: u64, n: u64, stride: u64) {
    let number = (n * stride) % keys;
    draft.spec.fairness_key = FairnessKey::new(format!("tenant-{number:07}")).expect("a good key");
}
