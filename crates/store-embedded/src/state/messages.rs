//! The messages of all queues.

use redrive_core::lease::{ConsumerName, Lease};
use redrive_core::message::{Lane, Phase, Progress};

use super::entry::{End, Entry, Extra, Held, NONE, Stage, lane};
use super::slab::Slab;
use crate::format::Place;

/// The messages of all queues.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub(crate) entries: Slab<Entry>,
    extras: Slab<Extra>,
    leases: Slab<Held>,
    ends: Slab<End>,
}

impl Messages {
    pub(crate) fn at(&self, slot: u32) -> &Entry {
        self.entries.at(slot)
    }

    pub(crate) fn at_mut(&mut self, slot: u32) -> &mut Entry {
        self.entries.at_mut(slot)
    }

    pub(crate) fn extra(&self, slot: u32) -> Option<&Extra> {
        let number = self.at(slot).extra;
        if number == NONE { None } else { Some(self.extras.at(number)) }
    }

    /// Its extra, made where it has none.
    pub(crate) fn extra_mut(&mut self, slot: u32) -> &mut Extra {
        if self.at(slot).extra == NONE {
            let number = self.extras.insert(Extra::default());
            self.at_mut(slot).extra = number;
        }
        self.extras.at_mut(self.entries.at(slot).extra)
    }

    pub(crate) fn held(&self, slot: u32) -> Option<&Held> {
        let entry = self.at(slot);
        if entry.stage == Stage::Leased { Some(self.leases.at(entry.before)) } else { None }
    }

    /// Who has a leased message.
    pub(crate) fn consumer(&self, slot: u32) -> ConsumerName {
        self.held(slot).map(|held| held.consumer.clone()).unwrap_or_default()
    }

    pub(crate) fn end(&self, slot: u32) -> Option<End> {
        let entry = self.at(slot);
        matches!(entry.stage, Stage::Dead | Stage::Done).then(|| *self.ends.at(entry.before))
    }

    pub(crate) fn redrives(&self, slot: u32) -> u32 {
        self.extra(slot).map_or(0, |extra| extra.redrives)
    }

    /// The lane it waits in, or was leased from.
    pub(crate) fn lane(&self, slot: u32) -> Lane {
        let entry = self.at(slot);
        let charged = entry.attempts.saturating_sub(u32::from(entry.stage == Stage::Leased));
        lane(charged, self.redrives(slot))
    }

    /// Deliveries that count against `max_deliveries`.
    pub(crate) fn deliveries_counted(&self, slot: u32) -> u32 {
        let before = self.extra(slot).map_or(0, |extra| extra.deliveries_before);
        self.at(slot).deliveries.saturating_sub(before)
    }

    /// Where it stands, as the rules of the lifecycle want it.
    pub(crate) fn progress(&self, slot: u32) -> Progress {
        let entry = self.at(slot);
        let extra = self.extra(slot);
        let phase = match (self.held(slot), self.end(slot)) {
            (Some(held), _) => Phase::Leased(Lease {
                id: held.id,
                consumer: held.consumer.clone(),
                leased_at: held.leased_at,
                deadline: held.deadline,
            }),
            (_, Some(End::Dead(death))) => Phase::Dead(death),
            (_, Some(End::Done(at))) => Phase::Done(at),
            (None, None) => Phase::Waiting,
        };
        Progress {
            phase,
            visible_at: entry.visible_at,
            sequence: entry.sequence,
            priority: entry.priority(),
            expires_at: extra.and_then(|extra| extra.expires_at),
            attempts: entry.attempts,
            deliveries: entry.deliveries,
            deliveries_before: extra.map_or(0, |extra| extra.deliveries_before),
            redrives: extra.map_or(0, |extra| extra.redrives),
        }
    }

    /// Takes a message in that stands where its base says.
    pub(crate) fn insert(&mut self, mut entry: Entry, progress: Progress, mut extra: Extra) -> u32 {
        extra.expires_at = progress.expires_at;
        extra.deliveries_before = progress.deliveries_before;
        extra.redrives = progress.redrives;
        if !extra.is_default() {
            entry.extra = self.extras.insert(extra);
        }
        entry.visible_at = progress.visible_at;
        entry.sequence = progress.sequence;
        entry.set_priority(progress.priority);
        entry.attempts = progress.attempts;
        entry.deliveries = progress.deliveries;
        (entry.stage, entry.before) = self.take_phase(progress.phase);
        self.entries.insert(entry)
    }

    fn take_phase(&mut self, phase: Phase) -> (Stage, u32) {
        match phase {
            Phase::Waiting => (Stage::Aside, NONE),
            Phase::Leased(Lease { id, consumer, leased_at, deadline }) => {
                (Stage::Leased, self.leases.insert(Held { id, consumer, leased_at, deadline }))
            }
            Phase::Dead(death) => (Stage::Dead, self.ends.insert(End::Dead(death))),
            Phase::Done(at) => (Stage::Done, self.ends.insert(End::Done(at))),
        }
    }

    /// Writes down where a message stands that is in no index, and not any more where its base says.
    pub(crate) fn set_progress(&mut self, slot: u32, progress: Progress) {
        self.clear_phase(slot);
        let bare = progress.expires_at.is_none() && progress.deliveries_before == 0 && progress.redrives == 0;
        if !bare || self.at(slot).extra != NONE {
            let extra = self.extra_mut(slot);
            extra.expires_at = progress.expires_at;
            extra.deliveries_before = progress.deliveries_before;
            extra.redrives = progress.redrives;
        }
        let (stage, before) = self.take_phase(progress.phase);
        let entry = self.at_mut(slot);
        entry.stage = stage;
        entry.before = before;
        entry.after = NONE;
        entry.visible_at = progress.visible_at;
        entry.sequence = progress.sequence;
        entry.set_priority(progress.priority);
        entry.set_changed(true);
        entry.attempts = progress.attempts;
        entry.deliveries = progress.deliveries;
    }

    fn clear_phase(&mut self, slot: u32) {
        let entry = self.entries.at_mut(slot);
        match entry.stage {
            Stage::Leased => self.leases.remove(entry.before),
            Stage::Dead | Stage::Done => self.ends.remove(entry.before),
            Stage::Delayed | Stage::Line | Stage::Stray | Stage::Aside => {}
        }
        (entry.stage, entry.before, entry.after) = (Stage::Aside, NONE, NONE);
    }

    /// Hands a message out that is in no index: the hot half of [`Messages::set_progress`].
    pub(crate) fn set_leased(&mut self, slot: u32, held: Held) {
        let number = self.leases.insert(held);
        let entry = self.at_mut(slot);
        entry.attempts = entry.attempts.saturating_add(1);
        entry.deliveries = entry.deliveries.saturating_add(1);
        (entry.stage, entry.before, entry.after) = (Stage::Leased, number, NONE);
        entry.set_changed(true);
    }

    pub(crate) fn set_deadline(&mut self, slot: u32, deadline: redrive_core::time::Timestamp) {
        self.at_mut(slot).set_changed(true);
        let number = self.at(slot).before;
        self.leases.at_mut(number).deadline = deadline;
    }

    /// Forgets a message that is in no index.
    pub(crate) fn remove(&mut self, slot: u32) {
        self.clear_phase(slot);
        let extra = self.at(slot).extra;
        if extra != NONE {
            self.extras.remove(extra);
        }
        // Whoever remembers the slot finds that the base is not its any more.
        self.at_mut(slot).at = Place::default();
        self.entries.remove(slot);
    }
}
