//! Large enqueues beside a bare COPY of as many rows.

use crate::Context;
use crate::bare::Bare;
use crate::caller::{Bodies, Caller};
use crate::life_cycle::BODY_BYTES;
use crate::progress::Progress;
use crate::report::{Bars, Limit, Table};
use crate::turns::{Done, HEADINGS, Worker, row, until};

/// As many messages as a batch may have.
const BATCH: usize = 1_000;

struct ByStore(Caller);

impl Worker for ByStore {
    async fn work(&mut self) -> u64 {
        self.0.enqueue(BATCH).await;
        BATCH as u64
    }
}

struct ByHand(Bare, Bodies);

impl Worker for ByHand {
    async fn work(&mut self) -> u64 {
        self.0.copy(&self.1.batch(BATCH)).await;
        BATCH as u64
    }
}

pub(crate) fn run(context: &Context, bars: &mut Bars) {
    let server = &context.server;
    let (mut store, mut loops) = context.runtime.block_on(async {
        let mut caller = Caller::open(server, "bench", 1, BODY_BYTES).await;
        Bare::fresh(server).await;
        let copier = Bare::connect(server).await;
        caller.enqueue(BATCH).await;
        (vec![ByStore(caller)], vec![ByHand(copier, Bodies::new(BODY_BYTES))])
    });
    let mut table = Table::new(&HEADINGS);
    let mut ratios = Vec::new();
    let copied = context.scale.copied;
    for number in 1..=context.scale.rounds {
        let mut progress = Progress::new(format!("copy, round {number}"));
        let (mut by_store, mut by_hand) = (Done::default(), Done::default());
        for turns in 1..=context.scale.turns {
            by_store += until(context, &mut store, move |_, messages| messages >= copied);
            by_hand += until(context, &mut loops, move |_, messages| messages >= copied);
            progress.at(|| format!("turn {turns} of {}", context.scale.turns));
        }
        row(&mut table, "store", number, &by_store);
        row(&mut table, "bare COPY", number, &by_hand);
        ratios.push(by_store.rate() / by_hand.rate());
        // Neither arm pays for the rows of the round before.
        let emptied = "TRUNCATE bench.message, bench.content, bench.tally, bare.job; CHECKPOINT";
        for statement in emptied.split("; ") {
            context.runtime.block_on(server.execute(statement));
        }
    }
    println!("1 KiB, {BATCH} in a call and in a transaction, one caller with one connection");
    table.print();
    bars.judge("copy", &ratios, Limit::AtLeast(0.5));
    for worker in &store {
        worker.0.close();
    }
}
