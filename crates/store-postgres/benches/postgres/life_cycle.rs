//! Life cycles of 1 KiB: enqueue, lease, ack, beside what the bare loop does; with a standing backlog.

use crate::Context;
use crate::bare::{BATCHES_MIN, Bare, CONNECTIONS, SINGLES_MIN};
use crate::caller::{Bodies, Caller};
use crate::progress::Progress;
use crate::report::{Bars, Limit, Table};
use crate::turns::{Done, HEADINGS, Worker, row, turn};

pub(crate) const BODY_BYTES: usize = 1_024;

/// So many messages at a time, through the store.
pub(crate) struct ByStore {
    pub(crate) caller: Caller,
    pub(crate) batch: usize,
}

impl Worker for ByStore {
    async fn work(&mut self) -> u64 {
        self.caller.life_cycle(self.batch).await;
        self.batch as u64
    }
}

/// The same by the bare loop.
struct ByHand {
    bare: Bare,
    bodies: Bodies,
    batch: usize,
}

impl Worker for ByHand {
    async fn work(&mut self) -> u64 {
        self.bare.life_cycle(&self.bodies.batch(self.batch)).await;
        self.batch as u64
    }
}

/// Four callers, a hundred messages at a time.
pub(crate) fn batches(context: &Context, bars: &mut Bars) {
    compare(context, bars, &Shape { bar: "life_cycle_100", callers: 4, batch: 100, share_min: BATCHES_MIN });
}

/// Sixty-four callers, one message at a time.
pub(crate) fn singles(context: &Context, bars: &mut Bars) {
    compare(context, bars, &Shape { bar: "single_64", callers: 64, batch: 1, share_min: SINGLES_MIN });
}

struct Shape {
    bar: &'static str,
    callers: u64,
    batch: usize,
    /// What of the bare loop's rate the store must reach.
    share_min: f64,
}

fn compare(context: &Context, bars: &mut Bars, shape: &Shape) {
    let (mut store, mut loops) = context.runtime.block_on(workers(context, shape));
    let mut table = Table::new(&HEADINGS);
    let mut ratios = Vec::new();
    for number in 1..=context.scale.rounds {
        let mut progress = Progress::new(format!("{}, round {number}", shape.bar));
        let (mut by_store, mut by_hand) = (Done::default(), Done::default());
        for turns in 1..=context.scale.turns {
            by_store += turn(context, &mut store);
            by_hand += turn(context, &mut loops);
            progress.at(|| format!("turn {turns} of {}", context.scale.turns));
        }
        row(&mut table, "store", number, &by_store);
        row(&mut table, "bare", number, &by_hand);
        ratios.push(by_store.rate() / by_hand.rate());
    }
    println!(
        "1 KiB, {} in the backlog; {} callers, {} at a time; {CONNECTIONS}",
        context.scale.backlog, shape.callers, shape.batch
    );
    table.print();
    bars.judge(shape.bar, &ratios, Limit::AtLeast(shape.share_min));
    for worker in &store {
        worker.caller.close();
    }
}

/// Both arms, warm: everybody is connected, has prepared its statements and finds a backlog.
async fn workers(context: &Context, shape: &Shape) -> (Vec<ByStore>, Vec<ByHand>) {
    let (server, batch) = (&context.server, shape.batch);
    let connections = usize::try_from(shape.callers).expect("a few");
    let mut caller = Caller::open(server, "bench", connections, BODY_BYTES).await;
    caller.load(context.scale.backlog, |_, _| ()).await;
    Bare::fresh(server).await;
    let mut bodies = Bodies::new(BODY_BYTES);
    let (mut store, mut bare) = (Vec::new(), Vec::new());
    for caller in caller.others(shape.callers) {
        store.push(ByStore { caller, batch });
        bare.push(ByHand { bare: Bare::connect(server).await, bodies: bodies.clone(), batch });
    }
    let mut left = usize::try_from(context.scale.backlog).expect("a backlog fits");
    while left > 0 {
        let part = left.min(1_000);
        bare.first().expect("there are callers").bare.insert(&bodies.batch(part)).await;
        left -= part;
    }
    server.settle().await;
    futures::future::join_all(store.iter_mut().map(Worker::work)).await;
    futures::future::join_all(bare.iter_mut().map(Worker::work)).await;
    (store, bare)
}
