//! The time of the store: never before the last time it saw, whatever the wall clock does.

use std::sync::Arc;

use redrive_core::time::{Millis, Timestamp};
use redrive_store::Now;

use crate::clock::Clock;

/// The clock of an open store: it started at the wall clock, or at the time of the last frame if that was later, and
/// follows a clock that nobody can set.
#[derive(Debug, Clone)]
pub struct StoreClock {
    clock: Arc<dyn Clock>,
    /// What the time was when `started` was the uptime.
    base: Timestamp,
    started: Millis,
}

impl StoreClock {
    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.base.plus(Millis::new(self.clock.uptime().get().saturating_sub(self.started.get())))
    }
}

/// The time of the store.
#[derive(Debug)]
pub(crate) struct Time {
    pub(crate) clock: StoreClock,
    /// The latest time seen; time never runs back.
    pub(crate) floor: Timestamp,
}

impl Time {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let started = clock.uptime();
        let clock = StoreClock { clock, base: Timestamp::EPOCH, started };
        Self { clock, floor: Timestamp::EPOCH }
    }

    /// Starts at the wall clock, or at the time of the last frame if that is later.
    pub(crate) fn start(&mut self, last: Timestamp) {
        self.clock.started = self.clock.clock.uptime();
        self.clock.base = self.clock.clock.wall().max(last);
        self.floor = self.clock.base;
    }

    /// The time of a call.
    pub(crate) fn at(&mut self, now: Now) -> Timestamp {
        let at = match now {
            Now::At(at) => at,
            Now::Store => self.clock.now(),
        };
        self.floor = self.floor.max(at);
        self.floor
    }
}
