//! Many histories, each from a seed, and the seed of the first that fails.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::oracle::Checked;
use crate::rounds::History;
use crate::world::{Dress, Tally, honest};

/// A kind of histories; its number is the upper half of their seeds, so that a seed says what it is of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) number: u64,
    pub(crate) history: History,
}

impl Kind {
    fn seeds(self, count: u64) -> impl Iterator<Item = u64> {
        let first = self.number << 32;
        first..first + count
    }

    /// Carries out one history; a panic is a broken promise, too.
    fn carry_out(self, seed: u64, dress: Dress) -> Checked<Tally> {
        let history = self.history;
        catch_unwind(AssertUnwindSafe(|| history(seed, dress))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            Err(format!("a panic: {}", text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("?")))
        })
    }

    /// Carries out so many histories, or the one that `REDRIVE_SEED` names, and says which was the first to break a
    /// promise.
    pub(crate) fn hold(self, count: u64) -> Tally {
        let mut tally = Tally::default();
        let asked = asked();
        let seeds: Vec<u64> = match asked {
            Some(seed) => [seed].into_iter().filter(|seed| seed >> 32 == self.number).collect(),
            None => self.seeds(count * times()).collect(),
        };
        for seed in seeds {
            match self.carry_out(seed, honest) {
                Ok(one) => tally.add(&one),
                Err(reason) => panic!(
                    "{}: the history of seed {seed:#x} broke a promise:\n{reason}\nreplay it with: \
                     REDRIVE_SEED={seed:#x} cargo test -p redrive-store-embedded --test faults",
                    self.name
                ),
            }
        }
        println!("{}: {tally:?}", self.name);
        tally
    }

    /// One of so many histories finds a sabotage, and finds it again.
    pub(crate) fn finds(self, dress: Dress, count: u64) {
        self.finds_that(dress, count, "");
    }

    /// The same, and says why.
    pub(crate) fn finds_that(self, dress: Dress, count: u64, says: &str) {
        for seed in self.seeds(count) {
            if let Err(reason) = self.carry_out(seed, dress)
                && reason.contains(says)
            {
                let again = self.carry_out(seed, dress).err();
                assert_eq!(again.as_ref(), Some(&reason), "seed {seed:#x} does not replay");
                println!("found with seed {seed:#x}: {reason}");
                return;
            }
        }
        panic!("{count} histories of {} found nothing", self.name);
    }

    /// What this kind of histories says about a sabotage that it cannot see: nothing.
    pub(crate) fn overlooks(self, dress: Dress, count: u64) {
        for seed in self.seeds(count) {
            assert_eq!(self.carry_out(seed, dress).err(), None, "found after all with seed {seed:#x}");
        }
    }
}

/// How many times as many histories as usual somebody wants.
fn times() -> u64 {
    std::env::var("REDRIVE_TIMES").map_or(1, |times| times.parse().expect("REDRIVE_TIMES is a number"))
}

/// The seed that somebody wants to see again.
pub(crate) fn asked() -> Option<u64> {
    let text = std::env::var("REDRIVE_SEED").ok()?;
    let seed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    Some(seed.expect("REDRIVE_SEED is a number, or 0x and a hexadecimal one"))
}
