//! What a person who waits wants to see.

use std::time::Duration;

use crate::measure::Stopwatch;

/// How long nothing may be said.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// Says on the error output what is going on and how far it is.
#[derive(Debug)]
pub(crate) struct Progress {
    what: String,
    said: Stopwatch,
}

impl Progress {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        let what = what.into();
        eprintln!("… {what}");
        Self { what, said: Stopwatch::start() }
    }

    /// Says how far it is, unless it has just done so.
    pub(crate) fn at(&mut self, how_far: impl FnOnce() -> String) {
        if self.said.elapsed() >= SILENCE_MAX {
            self.said = Stopwatch::start();
            eprintln!("… {}: {}", self.what, how_far());
        }
    }
}
