//! redrive: dead → ready.

use redrive_core::lifecycle::{self, Verb};
use redrive_core::message::{Note, RedriveNote};
use redrive_core::time::Timestamp;
use redrive_store::{Bulk, BulkRefusal, QueueError, Selection};

use crate::core::Core;
use crate::fault::Fault;
use crate::format::message::{Link, Until};
use crate::format::record::{self, HoldKey};
use crate::load::read_base;
use crate::state::entry::Stage;
use crate::state::{holds, ids};

impl Core {
    pub(crate) fn redrive(
        &mut self,
        now: Timestamp,
        selection: &Selection,
        by: &Note,
        reason: &Note,
    ) -> Result<Bulk, QueueError> {
        self.bulk(
            now,
            selection,
            |stage| stage == Stage::Dead,
            |core, slot| {
                let note = RedriveNote { at: now, by: by.clone(), reason: reason.clone() };
                core.redrive_one(now, slot, note)
            },
        )
    }

    fn redrive_one(&mut self, now: Timestamp, slot: u32, note: RedriveNote) -> Result<(), BulkRefusal> {
        let sequence = self.next_sequence();
        let max = self.options.limits.dedup_keys_per_queue;
        let number = self.messages.at(slot).queue;
        self.forget_keys(number, now);
        let unique = self.unique_key(slot);
        if let Some(digest) = unique {
            let holds = &self.queue(number).holds;
            if let Some(hold) = holds.get(digest) {
                return Err(BulkRefusal::Duplicate(ids::id(hold.message())));
            }
            if holds.len() >= max {
                return Err(BulkRefusal::TooManyDedupKeys { max });
            }
        }
        let mut progress = self.messages.progress(slot);
        if lifecycle::redrive(&mut progress, sequence, now) {
            self.count(number, Verb::Redrive);
            self.change(slot, progress, None, Link { redriven: Some(note), ..Link::default() });
            if let Some(digest) = unique {
                let (key, id) = (HoldKey { queue: number, digest }, self.id(slot));
                let base = Some(self.messages.at(slot).at);
                let put = record::put_hold(&mut self.journal.frame, key, id, Until::Done, base);
                let (at, _) = self.journal.placed(put);
                self.take_key(key, id, Until::Done, at, Some(slot));
            }
        }
        Ok(())
    }

    /// The dedup key that a dead message takes again when it comes back. Only its base knows it. Where the disk fails,
    /// the store stops.
    fn unique_key(&mut self, slot: u32) -> Option<u128> {
        let entry = self.messages.at(slot);
        if self.messages.extra(slot).is_some_and(|extra| extra.moved) {
            return None;
        }
        let key = self.journal.read(entry.at, entry.length).and_then(|bytes| {
            let view = read_base(&bytes).and_then(|base| crate::format::message::SpecView::take(base.spec));
            let view = view.map_err(|problem| Fault::new("reading a message", problem))?;
            Ok(view.unique_key.map(holds::digest_of))
        });
        key.unwrap_or_else(|fault| {
            self.fault.get_or_insert(fault);
            None
        })
    }
}
