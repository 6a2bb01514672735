//! What time it is in a store with a clock of its own, as an instance knows it between two calls.
//!
//! Every answer tells the time at which it was made, and arrives a little later. So the store is at least as far ahead of
//! this machine's uptime as any answer says, and the best of the last ones is the best guess: it is behind by what the
//! fastest of them took. Being behind is harmless. A timer that fires too early asks for what is not due yet.

use std::sync::{Mutex, MutexGuard, PoisonError};

use redrive_core::time::{Millis, Timestamp};

/// How long an answer counts, at least: the two clocks drift apart, and either may be set.
const PERIOD_MS: i64 = 10_000;

/// What is known of a store's clock, for timers and labels. What is decided, the store decides by its own.
#[derive(Debug)]
pub struct KnownClock {
    guess: Mutex<Guess>,
    uptime: fn() -> Millis,
}

impl KnownClock {
    /// The store has just said that it is this time. The uptime is that of this machine, sleep included: nobody can set that
    /// clock.
    pub fn new(at: Timestamp, uptime: fn() -> Millis) -> Self {
        Self { guess: Mutex::new(Guess::new(at, uptime())), uptime }
    }

    /// An answer that has just arrived says that it was this time.
    pub fn saw(&self, at: Timestamp) {
        let uptime = (self.uptime)();
        self.lock().saw(at, uptime);
    }

    /// What time it is. Never runs back.
    pub fn now(&self) -> Timestamp {
        let uptime = (self.uptime)();
        self.lock().now(uptime)
    }

    fn lock(&self) -> MutexGuard<'_, Guess> {
        self.guess.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Guess {
    /// How far the store is ahead of the uptime, by the best answer of this period and of the one before, in milliseconds.
    ahead: i64,
    /// The same by the answers of this period.
    ahead_lately: i64,
    /// When this period began, as uptime in milliseconds.
    began: i64,
    /// The latest time that was told to anybody, in milliseconds.
    told: i64,
}

impl Guess {
    fn new(at: Timestamp, uptime: Millis) -> Self {
        let (at, uptime) = (number(at.as_millis()), number(uptime.get()));
        let ahead = at.saturating_sub(uptime);
        Self { ahead, ahead_lately: ahead, began: uptime, told: at }
    }

    fn saw(&mut self, at: Timestamp, uptime: Millis) {
        let uptime = number(uptime.get());
        let ahead = number(at.as_millis()).saturating_sub(uptime);
        if uptime.saturating_sub(self.began) > PERIOD_MS {
            // One answer that lay around is no reason to go back: a whole period of them is.
            (self.ahead, self.ahead_lately, self.began) = (self.ahead_lately, ahead, uptime);
        }
        self.ahead_lately = self.ahead_lately.max(ahead);
        self.ahead = self.ahead.max(ahead);
    }

    fn now(&mut self, uptime: Millis) -> Timestamp {
        self.told = self.told.max(self.ahead.saturating_add(number(uptime.get())));
        Timestamp::from_millis(u64::try_from(self.told).unwrap_or_default())
    }
}

fn number(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(at: u64, uptime: u64) -> Guess {
        Guess::new(Timestamp::from_millis(at), Millis::new(uptime))
    }

    fn saw(guess: &mut Guess, at: u64, uptime: u64) {
        guess.saw(Timestamp::from_millis(at), Millis::new(uptime));
    }

    fn now(guess: &mut Guess, uptime: u64) -> u64 {
        guess.now(Millis::new(uptime)).as_millis()
    }

    #[test]
    fn the_fastest_answer_counts() {
        let mut guess = new(1_000_000, 500);
        assert_eq!(now(&mut guess, 700), 1_000_200);
        saw(&mut guess, 1_000_230, 700);
        assert_eq!(now(&mut guess, 700), 1_000_230, "the first one was 30 ms older when it arrived");
        saw(&mut guess, 1_000_300, 900);
        assert_eq!(now(&mut guess, 900), 1_000_430, "this one lay around for 130 ms");
    }

    #[test]
    fn a_clock_that_was_set_back_is_followed_by_standing_still() {
        let mut guess = new(1_000_000, 0);
        let mut last = 0;
        for uptime in (0..60_000).step_by(100) {
            saw(&mut guess, 940_000 + uptime, uptime);
            let now = now(&mut guess, uptime);
            assert!(now >= last, "it never runs back");
            last = now;
        }
        assert!(last < 1_000_000 + 3 * PERIOD_MS.unsigned_abs(), "it stood still at {last}");
        saw(&mut guess, 1_100_000, 160_000);
        assert_eq!(now(&mut guess, 160_000), 1_100_000, "and goes on when the store is there");
    }

    #[test]
    fn a_clock_that_was_set_ahead_is_followed_at_once() {
        let mut guess = new(1_000_000, 0);
        saw(&mut guess, 9_000_000, 10);
        assert_eq!(now(&mut guess, 20), 9_000_010);
    }

    #[test]
    fn an_answer_that_waited_for_a_stopped_process_changes_nothing() {
        let mut guess = new(1_000_000, 0);
        saw(&mut guess, 1_000_100, 40_100);
        assert_eq!(now(&mut guess, 40_100), 1_040_100);
        saw(&mut guess, 1_040_200, 40_200);
        assert_eq!(now(&mut guess, 55_000), 1_055_000);
    }
}
