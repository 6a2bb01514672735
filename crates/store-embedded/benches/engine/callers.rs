//! Unbatched calls: many callers at a time, whose commands share syncs, and one alone, who waits for one sync.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use redrive_store::LaneChoice;

use crate::Context;
use crate::bare::{Bare, Written};
use crate::caller::Caller;
use crate::measure::{Latencies, Stopwatch, micros, timed};
use crate::progress::Progress;
use crate::report::{Bars, Limit, Table, rate};
use crate::sustained::{bare_beside, written};

const BODY_BYTES: usize = 1_024;
const CALLERS: u64 = 64;

/// Single enqueues that come before as many bare writes.
const TURN: usize = 50;

/// What stands in the queue, so that every lease finds something.
const BACKLOG: u64 = 10_000;

pub(crate) fn run(context: &Context, bars: &mut Bars) {
    let mut caller = Caller::open(&context.place.fresh("callers"), context.scale, BODY_BYTES);
    caller.load("messages", BACKLOG, |_, _| ());
    let mut raw = bare_beside(&caller, &context.place.fresh("bare"), context.scale.segment_bytes);
    group_commit(context, bars, &caller, &mut raw);
    unbatched(context, bars, &mut caller, &mut raw);
    caller.close();
    context.place.clear("callers");
    context.place.clear("bare");
}

fn group_commit(context: &Context, bars: &mut Bars, caller: &Caller, raw: &mut Bare) {
    let mut table =
        Table::new(&["round", "commands/s", "commands/sync", "p50 us", "cpu us/command", "bare s", "s"]);
    let mut shared = Vec::new();
    for number in 1..=context.scale.rounds {
        let _progress = Progress::new(format!("{CALLERS} callers, round {number}"));
        let before = caller.usage();
        let watch = Stopwatch::start();
        let mut latencies = all_at_once(context, caller, number as u64);
        let lap = watch.lap();
        let written = written(&before, &caller.usage());
        let beside = raw.replay(&[written], written, written.syncs);
        let commands = latencies.len() as f64;
        let commands_per_sync = commands / written.syncs as f64;
        shared.push(commands_per_sync);
        table.row(&[
            &number,
            &rate(commands / lap.wall.as_secs_f64()),
            &format!("{commands_per_sync:.1}"),
            &format!("{:.0}", micros(latencies.quantile(500))),
            &format!("{:.1}", micros(lap.cpu) / commands),
            &format!("{:.2}", beside.wall.as_secs_f64()),
            &format!("{:.2}", lap.wall.as_secs_f64()),
        ]);
    }
    println!(
        "{CALLERS} callers, one command in flight each, in turn enqueue (1 KiB), lease and ack of one message"
    );
    table.print();
    bars.judge("group_commit", &shared, Limit::AtLeast(32.0));
}

/// Every caller in a thread of its own; the latency of each command.
fn all_at_once(context: &Context, caller: &Caller, round: u64) -> Latencies {
    let over = AtomicBool::new(false);
    let watch = Stopwatch::start();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..CALLERS)
            .map(|number| {
                let mut caller = caller.another(round * 1_000 + number);
                let (over, time) = (&over, context.scale.short);
                scope.spawn(move || {
                    let mut latencies = Latencies::default();
                    while !over.load(Ordering::Relaxed) {
                        one_life(&mut caller, &mut latencies);
                        if watch.elapsed() >= time {
                            over.store(true, Ordering::Relaxed);
                        }
                    }
                    latencies
                })
            })
            .collect();
        let mut all = Latencies::default();
        for thread in threads {
            all.extend(thread.join().expect("a caller does not panic"));
        }
        all
    })
}

fn one_life(caller: &mut Caller, latencies: &mut Latencies) {
    latencies.push(timed(|| caller.enqueue(1)).1);
    let (messages, took) = timed(|| caller.lease(1, LaneChoice::Queue));
    latencies.push(took);
    latencies.push(timed(|| caller.ack(&messages)).1);
}

fn unbatched(context: &Context, bars: &mut Bars, caller: &mut Caller, raw: &mut Bare) {
    let mut table =
        Table::new(&["round", "bytes", "engine p50 us", "p99 us", "bare p50 us", "p99 us", "ratio"]);
    let mut ratios = Vec::new();
    for number in 1..=context.scale.rounds {
        let _progress = Progress::new(format!("one caller, unbatched, round {number}"));
        let (mut engine, mut beside) = (Latencies::default(), Latencies::default());
        let mut total = Written::default();
        for _ in 0..context.scale.singles / TURN {
            let before = caller.usage();
            (0..TURN).for_each(|_| engine.push(timed(|| caller.enqueue(1)).1));
            let turn = written(&before, &caller.usage());
            (0..TURN).for_each(|_| beside.push(timed(|| raw.commit(each(turn))).1));
            total = total.plus(turn);
        }
        let bytes = each(total);
        let ratio = engine.quantile(500).div_duration_f64(beside.quantile(500));
        ratios.push(ratio);
        let mut us = |of_engine: bool, per_mille| {
            let latencies = if of_engine { &mut engine } else { &mut beside };
            format!("{:.0}", micros(latencies.quantile(per_mille)))
        };
        let (engine_p50, engine_p99) = (us(true, 500), us(true, 990));
        let (bare_p50, bare_p99) = (us(false, 500), us(false, 990));
        let ratio = format!("{ratio:.2}");
        table.row(&[&number, &bytes, &engine_p50, &engine_p99, &bare_p50, &bare_p99, &ratio]);
    }
    println!("one caller, one durable enqueue of 1 KiB at a time");
    table.print();
    bars.judge("unbatched_p50", &ratios, Limit::AtMost(1.5));
}

/// The bytes of one sync.
fn each(written: Written) -> usize {
    usize::try_from(written.bytes / written.syncs.max(1)).expect("a frame is small")
}
