//! The messages of a queue by id: a sorted list in chunks.
//!
//! Ids are mostly made in order, so mostly the last chunk grows and the first one shrinks. It finds a message for a
//! receipt and walks a listing, for twenty bytes a message; a hash and a tree beside it would take three times that.

use std::cell::Cell;
use std::collections::VecDeque;

use redrive_core::message::MessageId;

const CHUNK: usize = 64;

#[derive(Debug, Default)]
struct Chunk {
    ids: Vec<u128>,
    slots: Vec<u32>,
}

/// The messages of a queue by id.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// A lower bound of the ids of each chunk, and an upper bound of those of the one before.
    bounds: VecDeque<u128>,
    chunks: VecDeque<Chunk>,
    count: usize,
    /// The chunk that was asked last: those that are settled or cleaned together are mostly neighbours.
    last: Cell<usize>,
}

/// An id as a number that sorts as ids do.
pub(crate) fn number(id: MessageId) -> u128 {
    u128::from_be_bytes(*id.as_bytes())
}

/// The id with that number.
pub(crate) fn id(number: u128) -> MessageId {
    MessageId::from_bytes(number.to_be_bytes())
}

impl Ids {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    fn chunk_of(&self, id: u128) -> usize {
        let last = self.last.get();
        if self.belongs(id, last) {
            return last;
        }
        // Ids mostly grow: the last chunk is asked first.
        let chunk = match self.bounds.back() {
            Some(bound) if *bound <= id => self.bounds.len() - 1,
            _ if self.belongs(id, last + 1) => last + 1,
            _ => self.bounds.partition_point(|bound| *bound <= id).saturating_sub(1),
        };
        self.last.set(chunk);
        chunk
    }

    fn belongs(&self, id: u128, chunk: usize) -> bool {
        self.bounds.get(chunk).is_some_and(|bound| *bound <= id)
            && self.bounds.get(chunk + 1).is_none_or(|next| *next > id)
    }

    /// The message with that id.
    pub(crate) fn get(&self, id: u128) -> Option<u32> {
        let chunk = self.chunks.get(self.chunk_of(id))?;
        if chunk.ids.last().is_some_and(|largest| *largest < id) {
            return None;
        }
        let at = chunk.ids.binary_search(&id).ok()?;
        chunk.slots.get(at).copied()
    }

    /// Puts a message in, unless there is one with that id; says whether it did.
    pub(crate) fn insert(&mut self, id: u128, slot: u32) -> bool {
        if self.push(id, slot) {
            return true;
        }
        let at = self.chunk_of(id);
        let Some(chunk) = self.chunks.get_mut(at) else { return false };
        let place = chunk.ids.partition_point(|other| *other < id);
        if chunk.ids.get(place) == Some(&id) {
            return false;
        }
        if chunk.ids.len() == CHUNK {
            self.split(at);
            return self.insert(id, slot);
        }
        chunk.ids.insert(place, id);
        chunk.slots.insert(place, slot);
        self.count += 1;
        if place == 0
            && let Some(bound) = self.bounds.get_mut(at)
        {
            *bound = id.min(*bound);
        }
        true
    }

    /// Puts a message in behind all others, if its id is larger than theirs; says whether it did.
    fn push(&mut self, id: u128, slot: u32) -> bool {
        match self.chunks.back_mut() {
            Some(chunk) if chunk.ids.last().is_some_and(|last| *last >= id) => return false,
            Some(chunk) if chunk.ids.len() < CHUNK => {
                chunk.ids.push(id);
                chunk.slots.push(slot);
                self.count += 1;
            }
            _ => self.push_chunk(id, slot),
        }
        true
    }

    fn push_chunk(&mut self, id: u128, slot: u32) {
        self.count += 1;
        let mut chunk = Chunk { ids: Vec::with_capacity(CHUNK), slots: Vec::with_capacity(CHUNK) };
        chunk.ids.push(id);
        chunk.slots.push(slot);
        self.bounds.push_back(id);
        self.chunks.push_back(chunk);
    }

    fn split(&mut self, at: usize) {
        let Some(chunk) = self.chunks.get_mut(at) else { return };
        let half = chunk.ids.len() / 2;
        let upper = Chunk { ids: chunk.ids.split_off(half), slots: chunk.slots.split_off(half) };
        if let Some(bound) = upper.ids.first().copied() {
            self.bounds.insert(at + 1, bound);
            self.chunks.insert(at + 1, upper);
        }
    }

    /// Takes a message out.
    pub(crate) fn remove(&mut self, id: u128) -> Option<u32> {
        let at = self.chunk_of(id);
        let chunk = self.chunks.get_mut(at)?;
        let place = chunk.ids.binary_search(&id).ok()?;
        chunk.ids.remove(place);
        let slot = chunk.slots.remove(place);
        if chunk.ids.is_empty() {
            self.chunks.remove(at);
            self.bounds.remove(at);
        }
        self.count -= 1;
        Some(slot)
    }

    /// The messages after `after`, in order.
    pub(crate) fn after(&self, after: Option<u128>) -> impl Iterator<Item = (u128, u32)> {
        let first = after.map_or(0, |after| self.chunk_of(after));
        let all = self.chunks.iter().skip(first).flat_map(Chunk::iter);
        all.skip_while(move |(id, _)| after.is_some_and(|after| *id <= after))
    }

    /// The messages before `before`, the last first.
    pub(crate) fn before(&self, before: Option<u128>) -> impl Iterator<Item = (u128, u32)> {
        let last = before.map_or(self.chunks.len(), |before| self.chunk_of(before) + 1);
        let all = self.chunks.iter().take(last).rev().flat_map(|chunk| chunk.iter().rev());
        all.skip_while(move |(id, _)| before.is_some_and(|before| *id >= before))
    }
}

impl Chunk {
    fn iter(&self) -> impl DoubleEndedIterator<Item = (u128, u32)> {
        self.ids.iter().copied().zip(self.slots.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use redrive_core::dice::Dice;

    use super::*;

    #[test]
    fn it_is_a_sorted_map() {
        for seed in 0..20 {
            let mut dice = Dice::seeded(seed);
            let (mut ids, mut map) = (Ids::default(), BTreeMap::new());
            for n in 0..4_000u32 {
                let id = u128::from(if seed % 2 == 0 { dice.between(0, 3_000) } else { u64::from(n) });
                if dice.between(0, 3) == 0 {
                    let id = u128::from(dice.between(0, 3_000));
                    assert_eq!(ids.remove(id), map.remove(&id));
                } else {
                    let new = ids.insert(id, n);
                    assert_eq!(new, !map.contains_key(&id));
                    map.entry(id).or_insert(n);
                }
                assert_eq!(ids.get(id), map.get(&id).copied());
            }
            assert_eq!(ids.len(), map.len());
            let cut = u128::from(dice.between(0, 3_000));
            assert!(ids.after(None).eq(map.iter().map(|(id, slot)| (*id, *slot))));
            assert!(ids.after(Some(cut)).eq(map.range(cut + 1..).map(|(id, slot)| (*id, *slot))));
            assert!(ids.before(Some(cut)).eq(map.range(..cut).rev().map(|(id, slot)| (*id, *slot))));
        }
    }
}
