//! The fairness keys of a queue, and the lines of messages that stand behind each.
//!
//! A line holds the messages of one key, lane, priority, type and source, in order; its links are in the entries
//! themselves. Most messages come in order and join at the back. One that comes back to an earlier place (a release, a
//! change of priority) stands beside the line as a stray, in a tree, so that no walk along a line is ever needed.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;
use redrive_core::message::{FairnessKey, Lane};
use redrive_core::time::Timestamp;
use smallvec::SmallVec;

use super::entry::{Entry, NONE, Stage};
use super::slab::Slab;

/// Lane, priority and class of a line. Sorts by lane, then the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LineName {
    lane: Lane,
    /// 9 for the least urgent, 0 for the most.
    rank: u8,
    pub(crate) class: u16,
}

impl LineName {
    pub(crate) fn new(lane: Lane, entry: &Entry) -> Self {
        Self { lane, rank: 9 - entry.priority().get().min(9), class: entry.class }
    }
}

#[derive(Debug, Clone, Copy)]
struct Line {
    name: LineName,
    head: u32,
    tail: u32,
}

/// A stray's key, line and place.
type Stray = (u32, LineName, Timestamp, u64);

#[derive(Debug)]
struct Key {
    name: FairnessKey,
    /// How many messages have it, in any state.
    messages: u32,
    lines: SmallVec<[Line; 1]>,
}

/// The fairness keys of a queue.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    all: Slab<Key>,
    table: HashTable<u32>,
    hasher: RandomState,
    strays: BTreeMap<Stray, u32>,
    /// The key that was looked up last: mostly it is asked for again.
    last: Option<u32>,
}

impl Keys {
    /// The number of a key; one more message has it.
    pub(crate) fn join(&mut self, name: &str) -> u32 {
        let number = match self.find(name) {
            Some(number) => number,
            None => self.add(name),
        };
        self.all.at_mut(number).messages += 1;
        self.last = Some(number);
        number
    }

    /// The key that was looked up last, if it is still there; one more message has it.
    pub(crate) fn join_last(&mut self) -> Option<u32> {
        let number = self.last?;
        self.all.at_mut(number).messages += 1;
        Some(number)
    }

    fn find(&self, name: &str) -> Option<u32> {
        let is = |number: &u32| self.all.at(*number).name.as_str() == name;
        if let Some(last) = self.last.filter(is) {
            return Some(last);
        }
        self.table.find(self.hasher.hash_one(name), is).copied()
    }

    fn add(&mut self, name: &str) -> u32 {
        let key = FairnessKey::new(name).expect("a key in a record was checked when it was read");
        let number = self.all.insert(Key { name: key, messages: 0, lines: SmallVec::new() });
        let hash = self.hasher.hash_one(name);
        let (keys, hasher) = (&self.all, &self.hasher);
        self.table.insert_unique(hash, number, |other| hasher.hash_one(keys.at(*other).name.as_str()));
        number
    }

    /// One message less has that key; a key that no message has is forgotten.
    pub(crate) fn leave(&mut self, number: u32) {
        let key = self.all.at_mut(number);
        key.messages -= 1;
        if key.messages > 0 {
            return;
        }
        let hash = self.hasher.hash_one(key.name.as_str());
        if let Ok(found) = self.table.find_entry(hash, |other| *other == number) {
            found.remove();
        }
        // A ring may still name it; whoever asks finds a key without work.
        self.all.at_mut(number).lines = SmallVec::new();
        self.last = None;
        self.all.remove(number);
    }

    pub(crate) fn name(&self, number: u32) -> &FairnessKey {
        &self.all.at(number).name
    }

    /// Puts a message into its line, or beside it. Answers whether its key had no work in that lane before.
    pub(crate) fn enter(&mut self, entries: &mut Slab<Entry>, slot: u32, lane: Lane) -> bool {
        let entry = entries.at(slot);
        let (number, name, place) = (entry.key, LineName::new(lane, entry), entry.place());
        let was_idle = self.first(entries, number, lane, |_| true).is_none();
        let key = self.all.at_mut(number);
        let Some(own) = key.lines.iter_mut().find(|own| own.name == name) else {
            key.lines.push(Line { name, head: slot, tail: slot });
            link(entries.at_mut(slot), NONE, NONE);
            return was_idle;
        };
        if entries.at(own.tail).place() <= place {
            entries.at_mut(own.tail).after = slot;
            link(entries.at_mut(slot), own.tail, NONE);
            own.tail = slot;
        } else {
            self.strays.insert((number, name, place.0, place.1), slot);
            entries.at_mut(slot).stage = Stage::Stray;
        }
        was_idle
    }

    /// Takes a message out of its line, or from beside it.
    pub(crate) fn exit(&mut self, entries: &mut Slab<Entry>, slot: u32, lane: Lane) {
        let entry = entries.at(slot);
        let (number, name, place) = (entry.key, LineName::new(lane, entry), entry.place());
        let (before, after) = (entry.before, entry.after);
        if entry.stage == Stage::Stray {
            self.strays.remove(&(number, name, place.0, place.1));
            return;
        }
        if before != NONE {
            entries.at_mut(before).after = after;
        }
        if after != NONE {
            entries.at_mut(after).before = before;
        }
        let lines = &mut self.all.at_mut(number).lines;
        let Some(at) = lines.iter().position(|line| line.name == name) else { return };
        if let Some(line) = lines.get_mut(at) {
            if line.head == slot {
                line.head = after;
            }
            if line.tail == slot {
                line.tail = before;
            }
            if line.head == NONE {
                lines.swap_remove(at);
            }
        }
    }

    /// The message of a key that a lane serves first, of the classes that are asked for.
    pub(crate) fn first(
        &self,
        entries: &Slab<Entry>,
        number: u32,
        lane: Lane,
        takes: impl Fn(u16) -> bool,
    ) -> Option<u32> {
        let wanted = |name: &LineName| name.lane == lane && takes(name.class);
        let heads = self.all.at(number).lines.iter().filter(|line| wanted(&line.name));
        let mut best: Option<(u8, (Timestamp, u64), u32)> = None;
        for line in heads {
            consider(&mut best, line.name.rank, entries.at(line.head).place(), line.head);
        }
        if !self.strays.is_empty() {
            for ((_, name, at, sequence), slot) in self.strays.range(strays_of(number, lane)) {
                // In one rank, the strays of several classes are not in one order: each is looked at.
                if best.is_some_and(|(rank, ..)| name.rank > rank) {
                    break;
                }
                if takes(name.class) {
                    consider(&mut best, name.rank, (*at, *sequence), *slot);
                }
            }
        }
        best.map(|(_, _, slot)| slot)
    }

    /// Every message of a lane that stands in a line or beside one.
    pub(crate) fn all<'a>(
        &'a self,
        entries: &'a Slab<Entry>,
        lane: Lane,
        takes: impl Fn(u16) -> bool + Copy + 'a,
    ) -> impl Iterator<Item = u32> + 'a {
        let lines = self.table.iter().flat_map(|number| self.all.at(*number).lines.iter());
        let lines = lines.filter(move |line| line.name.lane == lane && takes(line.name.class));
        let in_lines = lines.flat_map(move |line| {
            std::iter::successors(Some(line.head), |slot| {
                Some(entries.at(*slot).after).filter(|next| *next != NONE)
            })
        });
        let strays =
            self.strays.iter().filter(move |((_, name, ..), _)| name.lane == lane && takes(name.class));
        in_lines.chain(strays.map(|(_, slot)| *slot))
    }

    /// How many messages stand in lines and beside them.
    pub(crate) fn count(&self, entries: &Slab<Entry>) -> usize {
        Lane::ALL.into_iter().map(|lane| self.all(entries, lane, |_| true).count()).sum()
    }

    /// The first message of each line, and every stray.
    pub(crate) fn heads(&self) -> impl Iterator<Item = u32> {
        let lines = self.table.iter().flat_map(|number| self.all.at(*number).lines.iter());
        lines.map(|line| line.head).chain(self.strays.values().copied())
    }
}

fn consider(best: &mut Option<(u8, (Timestamp, u64), u32)>, rank: u8, place: (Timestamp, u64), slot: u32) {
    if best.is_none_or(|(best_rank, best_place, _)| (rank, place) < (best_rank, best_place)) {
        *best = Some((rank, place, slot));
    }
}

fn link(entry: &mut Entry, before: u32, after: u32) {
    (entry.before, entry.after, entry.stage) = (before, after, Stage::Line);
}

fn strays_of(key: u32, lane: Lane) -> std::ops::RangeInclusive<Stray> {
    let first = LineName { lane, rank: 0, class: 0 };
    let last = LineName { lane, rank: u8::MAX, class: u16::MAX };
    (key, first, Timestamp::EPOCH, 0)..=(key, last, Timestamp::MAX, u64::MAX)
}
