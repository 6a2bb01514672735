//! Randomness for ids and for the judge's dice.

use std::sync::{Mutex, MutexGuard, PoisonError};

use redrive_core::dice::Dice;
use redrive_core::message::MessageId;
use redrive_core::time::Timestamp;

/// The random bits of an id; the upper one is left free, so that ids of one millisecond have room to grow.
const RANDOM_BITS: u32 = 74;
/// The bits by which an id may be larger than the one before in the same millisecond.
const STEP_BITS: u32 = 40;

/// How much randomness is fetched at a time.
const POOL_BYTES: usize = 4_096;

#[derive(Debug)]
struct State {
    dice: Dice,
    /// Randomness of the machine's own that nobody has seen yet.
    pool: Vec<u8>,
    /// The time and the random part of the last id.
    last: (Timestamp, u128),
}

impl State {
    /// So many random bits.
    fn random(&mut self, bits: u32) -> Result<u128, getrandom::Error> {
        if self.pool.len() < size_of::<u128>() {
            self.pool.resize(POOL_BYTES, 0);
            if let Err(error) = getrandom::fill(&mut self.pool) {
                self.pool.clear();
                return Err(error);
            }
        }
        let taken = self.pool.drain(self.pool.len() - size_of::<u128>()..);
        let number = taken.fold(0u128, |number, byte| number << 8 | u128::from(byte));
        Ok(number >> (u128::BITS - bits))
    }
}

/// Randomness that starts from the machine's own.
#[derive(Debug)]
pub(crate) struct Chance(Mutex<State>);

impl Chance {
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let dice = Dice::seeded(getrandom::u64()?);
        Ok(Self(Mutex::new(State { dice, pool: Vec::new(), last: (Timestamp::EPOCH, 0) })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A seed for the judge.
    pub(crate) fn seed(&self) -> u64 {
        self.lock().dice.roll()
    }

    /// Ids that are larger than every id made here before, in order: messages are listed as they were handed over. How
    /// much larger, nobody can guess.
    pub(crate) fn ids(&self, now: Timestamp, count: usize) -> Result<Vec<MessageId>, getrandom::Error> {
        let mut state = self.lock();
        if now > state.last.0 {
            state.last = (now, state.random(RANDOM_BITS - 1)?);
        }
        let mut ids = Vec::with_capacity(count);
        for _ in 0..count {
            let (at, before) = state.last;
            let next = before + 1 + state.random(STEP_BITS)?;
            // Where a millisecond is full, the next one is taken in advance.
            state.last = if next >> RANDOM_BITS == 0 {
                (at, next)
            } else {
                (at.plus(redrive_core::time::Millis::new(1)), state.random(RANDOM_BITS - 1)?)
            };
            ids.push(MessageId::new(state.last.0, spread(state.last.1)));
        }
        Ok(ids)
    }
}

/// The random part as an id takes it: twelve bits above, the rest below.
const fn spread(random: u128) -> u128 {
    const LOWER_BITS: u32 = 62;
    (random >> LOWER_BITS) << 64 | random & ((1 << LOWER_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_however_many_a_moment_needs_and_whatever_the_clock_does() {
        let chance = Chance::new().unwrap();
        let at = Timestamp::from_millis;
        let mut all = Vec::new();
        for now in [5, 5, 3, 6, 6] {
            all.extend(chance.ids(at(now), 1_000).unwrap());
        }
        assert!(all.is_sorted_by(|a, b| a < b));
        assert!(all.iter().all(|id| id.to_string().as_bytes()[14] == b'7'));
    }

    #[test]
    fn a_full_millisecond_lends_from_the_next() {
        let chance = Chance::new().unwrap();
        chance.lock().last = (Timestamp::from_millis(9), (1 << RANDOM_BITS) - 1);
        let last = MessageId::new(Timestamp::from_millis(9), spread((1 << RANDOM_BITS) - 1));
        let next = chance.ids(Timestamp::from_millis(9), 2).unwrap();
        assert!(last < next[0] && next[0] < next[1]);
    }
}
