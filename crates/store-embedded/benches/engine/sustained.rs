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
use crate::scale::Scale;

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
#[derive(Debug, Clone, Copy, Default)]
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
    /// This and what came after it.
    pub(crate) fn plus(&self, next: &Self) -> Self {
        let cleaned = next.cleaned.map(|last| Cleaned {
            segments: last.segments + self.cleaned.map_or(0, |before| before.segments),
            ..last
        });
        Self {
            cycles: self.cycles + next.cycles,
            batches: self.batches + next.batches,
            lap: Lap { wall: self.lap.wall + next.lap.wall, cpu: self.lap.cpu + next.lap.cpu },
            written: self.written.plus(next.written),
            cleaned,
        }
    }

    /// The same life cycles as far as the disk is concerned, without an engine.
    pub(crate) fn beside(&self, raw: &mut Bare, shape: &[Written]) -> Self {
        Self { lap: raw.replay(shape, self.written, self.batches), cleaned: None, ..*self }
    }

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

/// Life cycles of one kind, done in slices, so that another arm can do its own in between: then a slow second of the
/// machine hits both.
#[derive(Debug)]
pub(crate) struct Arm {
    batch: usize,
    until: Until,
    slice: Duration,
    /// What the cleaner will have cleaned when it has been round.
    pass: u64,
    done: Round,
    progress: Progress,
}

impl Arm {
    pub(crate) fn new(caller: &Caller, scale: Scale, what: &str, batch: usize, until: Until) -> Self {
        let usage = caller.usage();
        Self {
            batch,
            until,
            slice: scale.slice,
            pass: usage.cleaned_segments + usage.segments,
            done: Round::default(),
            progress: Progress::new(what),
        }
    }

    /// Drives `cycle`, one batch at a time, for a slice; answers what this slice did.
    pub(crate) fn slice(&mut self, caller: &mut Caller, mut cycle: impl FnMut(&mut Caller, usize)) -> Round {
        let before = caller.usage();
        let watch = Stopwatch::start();
        let mut batches = 0;
        while watch.elapsed() < self.slice {
            cycle(caller, self.batch);
            batches += 1;
        }
        let lap = watch.lap();
        let after = caller.usage();
        let slice = Round {
            cycles: batches * self.batch as u64,
            batches,
            lap,
            written: written(&before, &after),
            cleaned: Some(Cleaned {
                segments: after.cleaned_segments - before.cleaned_segments,
                full_pass: after.cleaned_segments >= self.pass,
            }),
        };
        self.done = self.done.plus(&slice);
        self.progress.at(|| {
            let cleaned = self.pass.saturating_sub(after.cleaned_segments);
            format!("{} life cycles, {cleaned} segments to clean", self.done.cycles)
        });
        slice
    }

    pub(crate) fn is_over(&self) -> bool {
        self.until.is_over(self.done.lap.wall, self.done.cleaned.is_some_and(|cleaned| cleaned.full_pass))
    }

    /// All slices together.
    pub(crate) fn done(&self) -> Round {
        self.done
    }
}

/// One arm alone, from start to end.
pub(crate) fn sustained(caller: &mut Caller, scale: Scale, what: &str, batch: usize, until: Until) -> Round {
    let mut arm = Arm::new(caller, scale, what, batch, until);
    while !arm.is_over() {
        arm.slice(caller, Caller::life_cycle);
    }
    arm.done()
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
