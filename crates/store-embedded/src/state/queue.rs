//! A queue with everything in it that is derived: who waits, who is due when, who is overdue when.

use std::collections::BTreeSet;

use redrive_core::lifecycle::Terms;
use redrive_core::message::{DeadReason, Lane, MessageType, Source};
use redrive_core::policy::{LaneCredit, Ring};
use redrive_core::queue::{Queue, QueueSettings, Totals};
use redrive_core::time::Timestamp;

use super::classes::Classes;
use super::entry::Stage;
use super::holds::Holds;
use super::ids::Ids;
use super::keys::Keys;
use super::messages::Messages;
use crate::format::Place;
use crate::format::config::{COUNTERS, counters};

/// A set of messages by time; those of one time by a number of their own.
type ByTime<T> = BTreeSet<(Timestamp, T, u32)>;

/// Whose turn it is: what an instance keeps for itself and forgets when it ends.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    pub(crate) credit: LaneCredit,
    fresh: Ring<u32>,
    retry: Ring<u32>,
    /// Keys that have work and left because they are paused.
    pub(crate) paused: Vec<u32>,
    /// When the first of those pauses ends.
    pub(crate) resume_at: Option<Timestamp>,
}

impl Turns {
    pub(crate) fn ring(&mut self, lane: Lane) -> &mut Ring<u32> {
        match lane {
            Lane::Fresh => &mut self.fresh,
            Lane::Retry => &mut self.retry,
        }
    }

    /// Lets the keys back that left because they were paused; those that still are will leave again.
    pub(crate) fn readmit(&mut self) {
        self.resume_at = None;
        for key in std::mem::take(&mut self.paused) {
            self.fresh.join(&key);
            self.retry.join(&key);
        }
    }
}

/// A queue and what is in it.
#[derive(Debug)]
pub(crate) struct QueueState {
    pub(crate) number: u32,
    pub(crate) queue: Queue,
    pub(crate) settings: QueueSettings,
    /// Its base.
    pub(crate) at: Place,
    pub(crate) length: u32,
    pub(crate) totals: Totals,
    /// What of the totals is in the journal.
    pub(crate) counted: [u64; COUNTERS],
    /// Whether the rest is to be written with this frame.
    pub(crate) dirty: bool,
    pub(crate) ids: Ids,
    pub(crate) keys: Keys,
    pub(crate) classes: Classes,
    pub(crate) holds: Holds,
    /// Waiting, by the time from which they may be leased, and their sequence.
    pub(crate) delayed: ByTime<u64>,
    /// Leased, by deadline and lease.
    pub(crate) deadlines: ByTime<u64>,
    /// Waiting with a time to live, by its end and id.
    pub(crate) lapsing: ByTime<u128>,
    /// Waiting over a cap that was lowered, by id.
    pub(crate) spent: BTreeSet<(u128, u32)>,
    pub(crate) dead: ByTime<u128>,
    pub(crate) done: ByTime<u128>,
    pub(crate) waiting: u64,
    pub(crate) retries_in_flight: u64,
    pub(crate) turns: Turns,
    /// Whether a journal is being read. Then nothing is derived from the messages but who is leased; the rest is
    /// derived once, at the end.
    pub(crate) reading: bool,
}

impl QueueState {
    pub(crate) fn new(number: u32, queue: Queue, settings: QueueSettings) -> Self {
        Self {
            number,
            queue,
            settings,
            at: Place::default(),
            length: 0,
            totals: Totals::default(),
            counted: [0; COUNTERS],
            dirty: false,
            ids: Ids::default(),
            keys: Keys::default(),
            classes: Classes::default(),
            holds: Holds::default(),
            delayed: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            lapsing: BTreeSet::new(),
            spent: BTreeSet::new(),
            dead: BTreeSet::new(),
            done: BTreeSet::new(),
            waiting: 0,
            retries_in_flight: 0,
            turns: Turns::default(),
            reading: false,
        }
    }

    /// What a message of this queue is judged by.
    pub(crate) fn terms(&self, messages: &Messages, slot: u32) -> Terms {
        Terms::new(&self.settings, messages.extra(slot).and_then(|extra| extra.max_attempts))
    }

    /// Whether another delivery would go over a cap, and over which.
    pub(crate) fn spent(&self, messages: &Messages, slot: u32) -> Option<DeadReason> {
        self.terms(messages, slot).spent(messages.at(slot).attempts, messages.deliveries_counted(slot))
    }

    pub(crate) fn class_of(&self, messages: &Messages, slot: u32) -> (&MessageType, &Source) {
        self.classes.get(messages.at(slot).class)
    }

    /// Whether a message of that type and source may come in: it brings no new pair, or there is room for one.
    pub(crate) fn takes_class(&self, kind: &str, source: &str, max: usize) -> bool {
        self.classes.len() < max || self.classes.find(kind, source).is_some()
    }

    /// Key and class of the message that came last, for another that has the same.
    pub(crate) fn join_last(&mut self) -> Option<(u32, u16)> {
        let class = self.classes.last()?;
        let key = self.keys.join_last()?;
        self.classes.join_number(class);
        Some((key, class))
    }

    /// How much was counted that is not in the journal.
    pub(crate) fn uncounted(&self) -> [u64; COUNTERS] {
        let mut more = counters(&self.totals);
        more.iter_mut().zip(&self.counted).for_each(|(now, before)| *now = now.saturating_sub(*before));
        more
    }

    /// Puts a message that is in no index into those where it belongs.
    pub(crate) fn index(&mut self, messages: &mut Messages, slot: u32, now: Timestamp) {
        let entry = messages.at(slot);
        let id = entry.id();
        match entry.stage {
            Stage::Leased => {
                let held = messages.held(slot).expect("a leased message has a lease");
                self.deadlines.insert((held.deadline, held.id.bits(), slot));
                self.retries_in_flight += u64::from(messages.lane(slot) == Lane::Retry);
            }
            _ if self.reading => {}
            Stage::Dead => drop(self.dead.insert((end_of(messages, slot), id, slot))),
            Stage::Done => drop(self.done.insert((end_of(messages, slot), id, slot))),
            _ => self.index_waiting(messages, slot, now),
        }
    }

    fn index_waiting(&mut self, messages: &mut Messages, slot: u32, now: Timestamp) {
        self.waiting += 1;
        let entry = messages.at(slot);
        let (id, (visible_at, sequence)) = (entry.id(), entry.place());
        if let Some(expires_at) = messages.extra(slot).and_then(|extra| extra.expires_at) {
            self.lapsing.insert((expires_at, id, slot));
        }
        if self.spent(messages, slot).is_some() {
            self.spent.insert((id, slot));
            messages.at_mut(slot).stage = Stage::Aside;
        } else if visible_at > now {
            self.delayed.insert((visible_at, sequence, slot));
            messages.at_mut(slot).stage = Stage::Delayed;
        } else {
            self.enter_line(messages, slot);
        }
    }

    fn enter_line(&mut self, messages: &mut Messages, slot: u32) {
        let lane = messages.lane(slot);
        if self.keys.enter(&mut messages.entries, slot, lane) {
            self.turns.ring(lane).join(&messages.at(slot).key);
        }
    }

    /// Takes a message out of every index.
    pub(crate) fn unindex(&mut self, messages: &mut Messages, slot: u32) {
        let entry = messages.at(slot);
        let (id, stage) = (entry.id(), entry.stage);
        match stage {
            Stage::Leased => {
                let held = messages.held(slot).expect("a leased message has a lease");
                self.deadlines.remove(&(held.deadline, held.id.bits(), slot));
                self.retries_in_flight -= u64::from(messages.lane(slot) == Lane::Retry);
            }
            _ if self.reading => return,
            Stage::Dead => drop(self.dead.remove(&(end_of(messages, slot), id, slot))),
            Stage::Done => drop(self.done.remove(&(end_of(messages, slot), id, slot))),
            Stage::Delayed => drop(self.delayed.remove(&(entry.visible_at, entry.sequence, slot))),
            Stage::Line | Stage::Stray => {
                let lane = messages.lane(slot);
                self.keys.exit(&mut messages.entries, slot, lane);
            }
            Stage::Aside => drop(self.spent.remove(&(id, slot))),
        }
        if stage.is_waiting() {
            self.waiting -= 1;
            if let Some(expires_at) = messages.extra(slot).and_then(|extra| extra.expires_at) {
                self.lapsing.remove(&(expires_at, id, slot));
            }
            messages.at_mut(slot).stage = Stage::Aside;
        }
    }

    /// Lets everybody into line whose time has come.
    pub(crate) fn promote(&mut self, messages: &mut Messages, now: Timestamp) {
        while let Some((_, _, slot)) = self.delayed.first().copied().filter(|(due, ..)| *due <= now) {
            self.delayed.pop_first();
            self.enter_line(messages, slot);
        }
    }

    /// Takes a message out of line that is too old to be handed out; it waits to lapse.
    pub(crate) fn set_aside(&mut self, messages: &mut Messages, slot: u32) {
        let lane = messages.lane(slot);
        self.keys.exit(&mut messages.entries, slot, lane);
        messages.at_mut(slot).stage = Stage::Aside;
    }
}

fn end_of(messages: &Messages, slot: u32) -> Timestamp {
    messages.end(slot).map_or(Timestamp::EPOCH, super::entry::End::at)
}
