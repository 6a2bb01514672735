//! Dedup keys of a queue: who holds one, until when, and when it is forgotten.
//!
//! A key is kept as the first half of its SHA-256, so it takes the same few bytes however long it is, and nobody can make
//! two keys meet.

use std::collections::{BTreeSet, VecDeque};

use hashbrown::HashTable;
use redrive_core::message::DedupKey;
use redrive_core::time::Timestamp;
use sha2::{Digest, Sha256};

use super::slab::Slab;
use crate::format::Place;
use crate::format::message::Until;

/// A key that is taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hold {
    digest: [u64; 2],
    message: [u64; 2],
    until: u64,
    /// Its base: a message, or a record of its own.
    pub(crate) at: Place,
}

const DONE: u64 = u64::MAX;

impl Hold {
    pub(crate) fn new(digest: u128, message: u128, until: Until, at: Place) -> Self {
        let until = match until {
            Until::Done => DONE,
            Until::Time(at) => at.as_millis(),
        };
        Self { digest: halves(digest), message: halves(message), until, at }
    }

    pub(crate) fn digest(&self) -> u128 {
        whole(self.digest)
    }

    pub(crate) fn message(&self) -> u128 {
        whole(self.message)
    }

    pub(crate) fn until(&self) -> Until {
        if self.until == DONE { Until::Done } else { Until::Time(Timestamp::from_millis(self.until)) }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "both halves are kept")]
fn halves(number: u128) -> [u64; 2] {
    [(number >> 64) as u64, number as u64]
}

fn whole([upper, lower]: [u64; 2]) -> u128 {
    u128::from(upper) << 64 | u128::from(lower)
}

/// What a key is kept as.
pub(crate) fn digest(key: &DedupKey) -> u128 {
    digest_of(key.as_str())
}

pub(crate) fn digest_of(key: &str) -> u128 {
    let hash = Sha256::digest(key.as_bytes());
    hash.iter().take(16).fold(0, |digest, byte| digest << 8 | u128::from(*byte))
}

/// The dedup keys of a queue.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    all: Slab<Hold>,
    table: HashTable<u32>,
    /// Those with an end, in the order of their ends, which is mostly the order in which they come.
    line: VecDeque<u32>,
    /// Those whose end is before that of one in the line.
    early: BTreeSet<(u64, u32)>,
}

impl Holds {
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn get(&self, digest: u128) -> Option<&Hold> {
        let number = self.table.find(hash(digest), |number| self.all.at(*number).digest == halves(digest))?;
        Some(self.all.at(*number))
    }

    /// A hold whose base was written again.
    pub(crate) fn moved(&mut self, digest: u128, at: Place) {
        if let Some(number) =
            self.table.find(hash(digest), |number| self.all.at(*number).digest == halves(digest)).copied()
        {
            self.all.at_mut(number).at = at;
        }
    }

    /// Takes a key that nobody has.
    pub(crate) fn insert(&mut self, hold: Hold) {
        let digest = hold.digest();
        debug_assert!(self.get(digest).is_none(), "its base would be needed for ever");
        let number = self.all.insert(hold);
        let holds = &self.all;
        self.table.insert_unique(hash(digest), number, |other| hash(whole(holds.at(*other).digest)));
        if hold.until == DONE {
            return;
        }
        let last = self.line.back().map(|last| self.all.at(*last).until);
        if last.is_none_or(|last| last != DONE && last <= hold.until) {
            self.line.push_back(number);
        } else {
            self.early.insert((hold.until, number));
        }
    }

    /// Lets a key go.
    pub(crate) fn remove(&mut self, digest: u128) -> Option<Hold> {
        let found =
            self.table.find_entry(hash(digest), |number| self.all.at(*number).digest == halves(digest));
        let (number, _) = found.ok()?.remove();
        let hold = *self.all.at(number);
        if hold.until != DONE && !self.early.remove(&(hold.until, number)) {
            // A key with an end is let go before it only where its enqueue is taken back, so it is near the back.
            if let Some(at) = self.line.iter().rposition(|other| *other == number) {
                self.line.remove(at);
            }
        }
        self.all.remove(number);
        Some(hold)
    }

    /// Forgets one key whose time is over.
    pub(crate) fn forget_one(&mut self, now: Timestamp) -> Option<Hold> {
        let over = |until: u64| until <= now.as_millis();
        let first = self.line.front().copied().filter(|number| over(self.all.at(*number).until));
        let number = if let Some(number) = first {
            self.line.pop_front();
            number
        } else {
            let first = self.early.first().copied().filter(|(until, _)| over(*until))?;
            self.early.remove(&first);
            first.1
        };
        let hold = *self.all.at(number);
        if let Ok(found) = self.table.find_entry(hash(whole(hold.digest)), |other| *other == number) {
            found.remove();
        }
        self.all.remove(number);
        Some(hold)
    }

    /// Every key that is taken, with its digest.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u128, &Hold)> {
        self.table.iter().map(|number| {
            let hold = self.all.at(*number);
            (whole(hold.digest), hold)
        })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a digest is as good as its lower half")]
fn hash(digest: u128) -> u64 {
    digest as u64
}
