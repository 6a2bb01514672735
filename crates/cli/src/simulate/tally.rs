//! What a simulation is asked about, counted while it runs.

use hdrhistogram::Histogram;
use redrive_core::message::{Lane, MessageId};
use redrive_core::time::{Millis, Timestamp};

use super::world::{Event, Look, Watch};

/// Into how many parts the time is cut for the chart.
pub(super) const COLUMNS: usize = 60;

/// What happened in one part of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Column {
    pub(super) fresh: u64,
    pub(super) retries: u64,
    /// The most messages that waited for a worker.
    pub(super) backlog: u64,
}

/// What happened in all.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    length: Millis,
    pub(super) arrived: u64,
    pub(super) fresh: u64,
    pub(super) retries: u64,
    pub(super) done: u64,
    pub(super) dead: u64,
    /// Hand-outs while both lanes had work, and how many of them were fresh.
    pub(super) contested: u64,
    pub(super) contested_fresh: u64,
    pub(super) waits: Histogram<u64>,
    /// The most messages that waited for a worker, and when there were so many first.
    pub(super) peak: (u64, Timestamp),
    /// When nothing waited for a worker any more after that.
    pub(super) drained: Option<Timestamp>,
    pub(super) columns: [Column; COLUMNS],
    /// How many waited when it was last looked, and in which column that was.
    last: (u64, usize),
}

impl Tally {
    pub(super) fn new(length: Millis) -> Self {
        Self {
            length,
            arrived: 0,
            fresh: 0,
            retries: 0,
            done: 0,
            dead: 0,
            contested: 0,
            contested_fresh: 0,
            // Nobody waits longer than it lasts.
            waits: Histogram::new_with_max(length.get().max(2), 3).expect("these bounds are allowed"),
            peak: (0, Timestamp::EPOCH),
            drained: None,
            columns: [Column::default(); COLUMNS],
            last: (0, 0),
        }
    }

    fn column(&self, now: Timestamp) -> usize {
        let at = u128::from(now.as_millis()) * COLUMNS as u128 / u128::from(self.length.get().max(1));
        usize::try_from(at).unwrap_or(COLUMNS).min(COLUMNS - 1)
    }

    /// Until the end nothing changes any more.
    pub(super) fn finish(&mut self) {
        self.carry(COLUMNS - 1);
    }

    /// What waits goes on waiting through columns in which nothing happens.
    fn carry(&mut self, to: usize) {
        let (backlog, from) = self.last;
        for column in self.columns.iter_mut().take(to + 1).skip(from + 1) {
            column.backlog = column.backlog.max(backlog);
        }
        self.last.1 = to;
    }
}

impl Watch for Tally {
    fn saw(&mut self, now: Timestamp, _: MessageId, event: Event) {
        let at = self.column(now);
        match event {
            Event::Arrived => self.arrived += 1,
            Event::Handed { lane, contested, waited } => {
                let fresh = lane == Lane::Fresh;
                self.contested += u64::from(contested);
                self.contested_fresh += u64::from(contested && fresh);
                if fresh {
                    self.fresh += 1;
                    self.columns[at].fresh += 1;
                    self.waits.saturating_record(waited.get());
                } else {
                    self.retries += 1;
                    self.columns[at].retries += 1;
                }
            }
            Event::Done => self.done += 1,
            Event::Retry { .. } => {}
            Event::Dead => self.dead += 1,
        }
    }

    fn looked(&mut self, now: Timestamp, look: Look) {
        let at = self.column(now);
        self.carry(at);
        self.columns[at].backlog = self.columns[at].backlog.max(look.ready);
        self.last = (look.ready, at);
        if look.ready > self.peak.0 {
            self.peak = (look.ready, now);
            self.drained = None;
        } else if look.ready == 0 && self.peak.0 > 0 && self.drained.is_none() {
            self.drained = Some(now);
        }
    }
}
