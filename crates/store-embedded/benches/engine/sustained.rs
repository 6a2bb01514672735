//! Life cycles for a while, and the same writes without an engine.

use std::fmt::Display;
use std::time::Duration;

use redrive_store::LaneChoice;
use redrive_store_embedded::Usage;

use crate::bare::{Bare, Written};
use crate::caller::Caller;
use crate::measure::{Lap, Stopwatch, micros};
use crate::progress::Progress;
use crate::report::{Table, megabytes, rate};

/// How often the store is asked how far its cleaner is, in batches: seldom enough to cost nothing.
const BATCHES_BETWEEN_LOOKS: u64 = 32;

/// Batches by which the shape of a life cycle's writes is found out.
const SHAPE_BATCHES: usize = 32;

/// When an arm may end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Until {
    /// Not before this much time.
    pub(crate) time: Duration,
    /// And not before every segment that was there at the start has been cleaned, unless patience ends first.
    pub(crate) full_pass: Option<Duration>,
}

/// What one arm did in one round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    /// Life cycles, in all.
    pub(crate) cycles: u64,
    /// Batches, in all.
    pub(crate) batches: u64,
    /// How long it took and what it cost.
    pub(crate) lap: Lap,
    /// What was written.
    pub(crate) written: Written,
    /// What was cleaned; nothing where there is nothing to clean.
    pub(crate) cleaned: Option<Cleaned>,
}

/// How far the cleaner came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cleaned {
    /// Segments.
    segments: u64,
    /// Whether that was every segment there was at the start.
    full_pass: bool,
}

impl Round {
    /// Life cycles a second.
    pub(crate) fn rate(&self) -> f64 {
        self.cycles as f64 / self.lap.wall.as_secs_f64()
    }

    /// CPU of a life cycle, in microseconds.
    pub(crate) fn cpu(&self) -> f64 {
        micros(self.lap.cpu) / self.cycles as f64
    }

    /// Bytes written for a life cycle.
    pub(crate) fn bytes(&self) -> f64 {
        self.written.bytes as f64 / self.cycles as f64
    }
}

/// Drives `cycle`, one batch at a time, until it may end.
pub(crate) fn sustained(
    caller: &mut Caller,
    what: &str,
    batch: usize,
    until: Until,
    mut cycle: impl FnMut(&mut Caller, usize),
) -> Round {
    let mut progress = Progress::new(what);
    let before = caller.usage();
    let pass = before.cleaned_segments + before.segments;
    let watch = Stopwatch::start();
    let mut batches = 0;
    let (after, lap) = loop {
        for _ in 0..BATCHES_BETWEEN_LOOKS {
            cycle(caller, batch);
        }
        batches += BATCHES_BETWEEN_LOOKS;
        let lap = watch.lap();
        let usage = caller.usage();
        if until.is_over(lap.wall, usage.cleaned_segments >= pass) {
            break (usage, lap);
        }
        progress.at(|| {
            let cleaned = usage.cleaned_segments - before.cleaned_segments;
            format!(
                "{} life cycles, {cleaned} of {} segments cleaned",
                batches * batch as u64,
                before.segments
            )
        });
    };
    Round {
        cycles: batches * batch as u64,
        batches,
        lap,
        written: written(&before, &after),
        cleaned: Some(Cleaned {
            segments: after.cleaned_segments - before.cleaned_segments,
            full_pass: after.cleaned_segments >= pass,
        }),
    }
}

impl Until {
    fn is_over(&self, elapsed: Duration, pass_is_full: bool) -> bool {
        elapsed >= self.time
            && match self.full_pass {
                Some(patience) => pass_is_full || elapsed >= patience,
                None => true,
            }
    }
}

/// The same bytes in the same batches with as many syncs, without an engine.
pub(crate) fn bare_round(bare: &mut Bare, what: &str, shape: &[Written], engine: &Round) -> Round {
    let _progress = Progress::new(what);
    let lap = bare.replay(shape, engine.written, engine.batches);
    Round { lap, cleaned: None, ..*engine }
}

/// What each verb of a life cycle writes, and in how many syncs.
pub(crate) fn shape(caller: &mut Caller, batch: usize) -> [Written; 3] {
    let mut shape = [Written::default(); 3];
    for _ in 0..SHAPE_BATCHES {
        let start = caller.usage();
        caller.enqueue(batch);
        let enqueued = caller.usage();
        let messages = caller.lease(batch, LaneChoice::Queue);
        let leased = caller.usage();
        caller.ack(&messages);
        let acked = caller.usage();
        let steps = [written(&start, &enqueued), written(&enqueued, &leased), written(&leased, &acked)];
        for (verb, step) in shape.iter_mut().zip(steps) {
            *verb = verb.plus(step);
        }
    }
    shape
}

/// Files like those that the store has now.
pub(crate) fn bare_beside(caller: &Caller, dir: &std::path::Path, segment_bytes: u32) -> Bare {
    let usage = caller.usage();
    let _progress = Progress::new("preparing the files of the bare loop");
    Bare::prepare(dir, (usage.segments + usage.spares).max(2), u64::from(segment_bytes))
}

/// What was written between two looks.
pub(crate) fn written(before: &Usage, after: &Usage) -> Written {
    Written { bytes: after.written_bytes - before.written_bytes, syncs: after.syncs - before.syncs }
}

/// The headings of a table of rounds.
pub(crate) const HEADINGS: [&str; 10] =
    ["arm", "round", "cycles/s", "cpu us", "bytes/cycle", "syncs/batch", "MB", "s", "cleaned", "full pass"];

/// A row of such a table.
pub(crate) fn row(table: &mut Table, arm: &dyn Display, round: usize, done: &Round) {
    let (cleaned, full_pass) = match done.cleaned {
        Some(Cleaned { segments, full_pass }) => (segments.to_string(), if full_pass { "yes" } else { "no" }),
        None => ("-".to_owned(), "-"),
    };
    table.row(&[
        arm,
        &round,
        &rate(done.rate()),
        &format!("{:.2}", done.cpu()),
        &format!("{:.0}", done.bytes()),
        &format!("{:.2}", done.written.syncs as f64 / done.batches as f64),
        &megabytes(done.written.bytes),
        &format!("{:.1}", done.lap.wall.as_secs_f64()),
        &cleaned,
        &full_pass,
    ]);
}
