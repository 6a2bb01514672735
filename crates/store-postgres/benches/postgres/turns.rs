//! Callers that work for the length of a turn, and what the turns of a round come to.

use std::ops::AddAssign;
use std::time::Duration;

use futures::future::join_all;

use crate::Context;
use crate::measure::{Lap, Stopwatch, micros};
use crate::report::{Table, rate};

/// What was done in some turns.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Done {
    pub(crate) messages: u64,
    lap: Lap,
    /// The server's CPU.
    server: Duration,
}

impl Done {
    /// Messages a second.
    pub(crate) fn rate(&self) -> f64 {
        self.messages as f64 / self.lap.wall.as_secs_f64()
    }
}

impl AddAssign for Done {
    fn add_assign(&mut self, more: Self) {
        self.messages += more.messages;
        self.lap.wall += more.lap.wall;
        self.lap.cpu += more.lap.cpu;
        self.server += more.server;
    }
}

/// The headings of [`row`].
pub(crate) const HEADINGS: [&str; 6] =
    ["arm", "round", "messages/s", "cpu us/message", "server cpu us/message", "s"];

pub(crate) fn row(table: &mut Table, arm: &str, round: usize, done: &Done) {
    let per_message = |span: Duration| format!("{:.1}", micros(span) / done.messages.max(1) as f64);
    table.row(&[
        &arm,
        &round,
        &rate(done.rate()),
        &per_message(done.lap.cpu),
        &per_message(done.server),
        &format!("{:.1}", done.lap.wall.as_secs_f64()),
    ]);
}

/// One of several who do the same at the same time.
pub(crate) trait Worker: Send + 'static {
    /// Does it once, and says with how many messages.
    fn work(&mut self) -> impl Future<Output = u64> + Send;
}

/// All workers at the same time, each until the time is over.
pub(crate) fn turn<W: Worker>(context: &Context, workers: &mut Vec<W>) -> Done {
    let time = context.scale.turn;
    until(context, workers, move |watch, _| watch.elapsed() >= time)
}

/// All workers at the same time, each until it is told that it is over; it is told how many messages it did.
pub(crate) fn until<W: Worker>(
    context: &Context,
    workers: &mut Vec<W>,
    is_over: impl Fn(&Stopwatch, u64) -> bool + Copy + Send + 'static,
) -> Done {
    let server = context.server.cpu();
    let watch = Stopwatch::start();
    let running = std::mem::take(workers).into_iter().map(|mut worker| {
        context.runtime.spawn(async move {
            let mut messages = 0;
            while !is_over(&watch, messages) {
                messages += worker.work().await;
            }
            (worker, messages)
        })
    });
    let running: Vec<_> = running.collect();
    let ended = context.runtime.block_on(join_all(running));
    let mut done =
        Done { messages: 0, lap: watch.lap(), server: context.server.cpu().saturating_sub(server) };
    for ended in ended {
        let (worker, messages) = ended.expect("a worker does not panic");
        workers.push(worker);
        done.messages += messages;
    }
    done
}
