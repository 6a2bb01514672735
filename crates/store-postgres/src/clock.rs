//! What time it is in the database, as this instance knows it between two calls.
//!
//! Every answer tells the time at which it was made, and arrives a little later. So the database is at least as far ahead of
//! this machine's uptime as any answer says, and the best of the last ones is the best guess: it is behind by what the
//! fastest of them took. Being behind is harmless. A timer that fires too early asks for what is not due yet.

use std::sync::{Arc, Mutex, PoisonError};

use redrive_core::time::Timestamp;
use rustix::time::{ClockId, clock_gettime};

use crate::row::{millis, time};
use crate::session::Link;

/// How long an answer counts, at least: the two clocks drift apart, and either may be set.
const PERIOD_MS: i64 = 10_000;

/// How long the machine has been up, sleep included. Nobody can set that clock.
fn uptime() -> i64 {
    let up = clock_gettime(ClockId::Boottime);
    up.tv_sec.saturating_mul(1_000).saturating_add(up.tv_nsec / 1_000_000)
}

/// The clock of an open store, for timers and labels. What is decided, the database decides by its own.
#[derive(Debug, Clone)]
pub struct StoreClock(pub(crate) Arc<Link>);

impl StoreClock {
    /// What time it is. Never runs back.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }
}

/// What is known of the database's clock.
#[derive(Debug)]
pub(crate) struct KnownClock(Mutex<Guess>);

impl KnownClock {
    /// The database says that it is this time.
    pub(crate) fn new(at: Timestamp) -> Self {
        Self(Mutex::new(Guess::new(millis(at), uptime())))
    }

    /// An answer says that it was this time.
    pub(crate) fn saw(&self, at: Timestamp) {
        let uptime = uptime();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).saw(millis(at), uptime);
    }

    pub(crate) fn now(&self) -> Timestamp {
        let uptime = uptime();
        time(self.0.lock().unwrap_or_else(PoisonError::into_inner).now(uptime))
    }
}

/// All in milliseconds.
#[derive(Debug)]
struct Guess {
    /// How far the database is ahead of the uptime, by the best answer of this period and of the one before.
    ahead: i64,
    /// The same by the answers of this period.
    ahead_lately: i64,
    /// When this period began.
    began: i64,
    /// The latest time that was told to anybody.
    told: i64,
}

impl Guess {
    fn new(at: i64, uptime: i64) -> Self {
        let ahead = at.saturating_sub(uptime);
        Self { ahead, ahead_lately: ahead, began: uptime, told: at }
    }

    fn saw(&mut self, at: i64, uptime: i64) {
        let ahead = at.saturating_sub(uptime);
        if uptime.saturating_sub(self.began) > PERIOD_MS {
            // One answer that lay around is no reason to go back: a whole period of them is.
            (self.ahead, self.ahead_lately, self.began) = (self.ahead_lately, ahead, uptime);
        }
        self.ahead_lately = self.ahead_lately.max(ahead);
        self.ahead = self.ahead.max(ahead);
    }

    fn now(&mut self, uptime: i64) -> i64 {
        self.told = self.told.max(self.ahead.saturating_add(uptime));
        self.told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_answer_counts() {
        let mut guess = Guess::new(1_000_000, 500);
        assert_eq!(guess.now(700), 1_000_200);
        guess.saw(1_000_230, 700);
        assert_eq!(guess.now(700), 1_000_230, "the first one was 30 ms older when it arrived");
        guess.saw(1_000_300, 900);
        assert_eq!(guess.now(900), 1_000_430, "this one lay around for 130 ms");
    }

    #[test]
    fn a_clock_that_was_set_back_is_followed_by_standing_still() {
        let mut guess = Guess::new(1_000_000, 0);
        let mut last = 0;
        for uptime in (0..60_000).step_by(100) {
            let at = 940_000 + uptime;
            guess.saw(at, uptime);
            let now = guess.now(uptime);
            assert!(now >= last, "it never runs back");
            last = now;
        }
        assert!(last < 1_000_000 + 3 * PERIOD_MS, "it stood still at {last}");
        guess.saw(1_100_000, 160_000);
        assert_eq!(guess.now(160_000), 1_100_000, "and goes on when the database is there");
    }

    #[test]
    fn a_clock_that_was_set_ahead_is_followed_at_once() {
        let mut guess = Guess::new(1_000_000, 0);
        guess.saw(9_000_000, 10);
        assert_eq!(guess.now(20), 9_000_010);
    }

    #[test]
    fn an_answer_that_waited_for_a_stopped_process_changes_nothing() {
        let mut guess = Guess::new(1_000_000, 0);
        guess.saw(1_000_100, 40_100);
        assert_eq!(guess.now(40_100), 1_040_100);
        guess.saw(1_040_200, 40_200);
        assert_eq!(guess.now(55_000), 1_055_000);
    }
}
