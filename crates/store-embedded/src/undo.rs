//! Taking an all-or-nothing batch back.
//!
//! The records go by cutting the frame short. What was applied is taken back message by message, from how each was
//! before.

use redrive_core::message::{FairnessKey, MessageType, Progress, Source};
use redrive_core::queue::Totals;

use crate::core::{Arrival, Core, Names};
use crate::format::record::StoreRecord;
use crate::state::entry::{Entry, Extra};
use crate::state::holds::Hold;

/// A message before it was changed.
#[derive(Debug)]
struct Before {
    entry: Entry,
    names: (MessageType, Source, FairnessKey),
    progress: Progress,
    extra: Extra,
    hold: Option<Hold>,
}

#[derive(Debug)]
enum Step {
    Created { queue: u32, id: u128, digest: Option<u128> },
    Changed(Box<Before>),
}

/// What an all-or-nothing batch did so far.
#[derive(Debug)]
pub(crate) struct Undo {
    frame: usize,
    store: StoreRecord,
    totals: Vec<(u32, Totals)>,
    steps: Vec<Step>,
}

impl Undo {
    pub(crate) fn remember_totals(&mut self, queue: u32, totals: Totals) {
        if self.totals.iter().all(|(number, _)| *number != queue) {
            self.totals.push((queue, totals));
        }
    }

    pub(crate) fn created(&mut self, queue: u32, id: u128, digest: Option<u128>) {
        self.steps.push(Step::Created { queue, id, digest });
    }
}

impl Core {
    /// From here on, what happens can be taken back.
    pub(crate) fn begin_undo(&mut self) {
        let frame = self.journal.frame.len();
        let store = self.store.clone();
        self.undo = Some(Undo { frame, store, totals: Vec::new(), steps: Vec::new() });
    }

    /// Notes how a message is, before it changes.
    pub(crate) fn remember(&mut self, slot: u32) {
        if self.undo.is_none() {
            return;
        }
        let entry = self.messages.at(slot).clone();
        let extra = self.messages.extra(slot).cloned().unwrap_or_default();
        let hold = extra.unique.and_then(|digest| self.queue(entry.queue).holds.get(digest).copied());
        let before =
            Before { names: self.names_of(slot), progress: self.messages.progress(slot), entry, extra, hold };
        if let Some(undo) = &mut self.undo {
            undo.steps.push(Step::Changed(Box::new(before)));
        }
    }

    /// Takes back what happened since [`Core::begin_undo`].
    pub(crate) fn take_back(&mut self) {
        let Some(undo) = self.undo.take() else { return };
        self.journal.frame.truncate(undo.frame);
        for step in undo.steps.into_iter().rev() {
            match step {
                Step::Created { queue, id, digest } => self.take_back_created(queue, id, digest),
                Step::Changed(before) => self.take_back_changed(*before),
            }
        }
        for (number, totals) in undo.totals {
            self.queue_mut(number).totals = totals;
        }
        self.store = undo.store;
    }

    fn take_back_created(&mut self, queue: u32, id: u128, digest: Option<u128>) {
        if let Some(slot) = self.queue(queue).ids.get(id) {
            self.detach(slot);
        }
        if let Some(hold) = digest.and_then(|digest| self.queue_mut(queue).holds.remove(digest)) {
            self.journal.let_go(hold.at, 0);
        }
    }

    fn take_back_changed(&mut self, before: Before) {
        let (entry, number) = (&before.entry, before.entry.queue);
        let id = entry.id();
        // A message that died may have been moved on.
        let target = self.queue(number).settings.dead_letter_to.as_ref();
        let target = target.and_then(|target| self.names.get(target)).copied();
        for queue in [Some(number), target].into_iter().flatten() {
            if let Some(slot) = self.queue(queue).ids.get(id)
                && self.messages.at(slot).at == entry.at
            {
                self.detach(slot);
            }
        }
        let (kind, source, key) = &before.names;
        let slot = self.attach(Arrival {
            id,
            queue: number,
            at: entry.at,
            length: entry.length,
            load: entry.load,
            names: Names::Given { kind: kind.as_str(), source: source.as_str(), key: key.as_str() },
            progress: before.progress,
            extra: before.extra,
        });
        self.messages.at_mut(slot).set_changed(before.entry.is_changed());
        if let Some(hold) = before.hold {
            // A change that was no end of the message has left the key with it.
            if let Some(held) = self.queue_mut(number).holds.remove(hold.digest()) {
                self.journal.let_go(held.at, 0);
            }
            self.queue_mut(number).holds.insert(hold);
            self.journal.keep(hold.at, 0);
        }
    }
}
