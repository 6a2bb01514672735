//! Randomness for ids and for the judge's dice.

use std::sync::{Mutex, PoisonError};

use redrive_core::dice::Dice;
use redrive_core::message::MessageId;
use redrive_core::time::Timestamp;

/// How many random bytes an id takes.
const ID_BYTES: usize = 16;

/// Randomness that starts from the machine's own.
#[derive(Debug)]
pub(crate) struct Chance(Mutex<Dice>);

impl Chance {
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        Ok(Self(Mutex::new(Dice::seeded(getrandom::u64()?))))
    }

    /// A seed for the judge.
    pub(crate) fn seed(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).roll()
    }
}

/// Ids that nobody can guess, all made at one time, in order.
pub(crate) fn ids(at: Timestamp, count: usize) -> Result<Vec<MessageId>, getrandom::Error> {
    let mut bytes = vec![0; count * ID_BYTES];
    getrandom::fill(&mut bytes)?;
    let mut ids: Vec<MessageId> = bytes
        .chunks_exact(ID_BYTES)
        .filter_map(|chunk| chunk.try_into().ok().map(u128::from_le_bytes))
        .map(|random| MessageId::new(at, random))
        .collect();
    // The messages of one call are listed in the order in which they were handed over.
    ids.sort_unstable();
    Ok(ids)
}
