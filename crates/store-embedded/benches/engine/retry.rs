//! What a retry costs: enqueue, lease, nack, lease, ack beside the plain life cycle.

use crate::Context;
use crate::caller::Caller;
use crate::report::{Bars, Limit, Table};
use crate::sustained::{Arm, HEADINGS, Until, row, sustained};

const BODY_BYTES: usize = 1_024;
const BATCH: usize = 256;

pub(crate) fn run(context: &Context, bars: &mut Bars) {
    let scale = context.scale;
    let mut caller = Caller::open(&context.place.fresh("retry"), scale, BODY_BYTES);
    caller.load("messages of standing backlog", scale.backlog, |_, _| ());
    let warm_up = Until { time: scale.short, full_pass: Some(scale.patience) };
    sustained(&mut caller, scale, "warming up, until the cleaner has been round", BATCH, warm_up);
    let until = Until { time: scale.short, full_pass: None };
    let mut table = Table::new(&HEADINGS);
    let (mut rates, mut cpu) = (Vec::new(), Vec::new());
    for number in 1..=scale.rounds {
        let arm = |name: &str| Arm::new(&caller, scale, &format!("{name}, round {number}"), BATCH, until);
        let (mut plain, mut retried) = (arm("plain"), arm("retried"));
        while !(plain.is_over() && retried.is_over()) {
            plain.slice(&mut caller, Caller::life_cycle);
            retried.slice(&mut caller, Caller::retry_cycle);
        }
        let (plain, retried) = (plain.done(), retried.done());
        row(&mut table, &"plain", number, &plain);
        row(&mut table, &"retried", number, &retried);
        rates.push(retried.rate() / plain.rate());
        cpu.push(retried.cpu() / plain.cpu());
    }
    println!("1 KiB, {} in the backlog, batches of {BATCH}, base_delay 0", scale.backlog);
    table.print();
    bars.judge("retry_rate", &rates, Limit::AtLeast(0.5));
    bars.judge("retry_cpu", &cpu, Limit::AtMost(1.8));
    caller.close();
    context.place.clear("retry");
}
