//! move: any but leased → another queue.

use redrive_core::invalid::Invalid;
use redrive_core::lifecycle::{self, Verb};
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::{Bulk, BulkRefusal, QueueError, Selection};

use crate::core::Core;
use crate::format::message::Link;
use crate::state::entry::Stage;

impl Core {
    pub(crate) fn move_to(
        &mut self,
        now: Timestamp,
        selection: &Selection,
        target: &QueueName,
    ) -> Result<Bulk, QueueError> {
        let to = self.number(target)?;
        if *target == selection.queue {
            return Err(Invalid::unusable("target", "must be another queue").into());
        }
        self.bulk(now, selection, |stage| stage != Stage::Leased, |core, slot| core.carry(slot, to, now))
    }

    /// Takes a message from one queue to another in one step, counted in both.
    pub(crate) fn carry(&mut self, slot: u32, to: u32, now: Timestamp) -> Result<(), BulkRefusal> {
        let max = self.options.limits.classes_per_queue;
        let (id, from) = (self.id(slot), self.messages.at(slot).queue);
        if self.find(to, id).is_some() {
            return Err(BulkRefusal::Duplicate(id));
        }
        let (kind, source, _) = self.names_of(slot);
        if !self.queue(to).takes_class(kind.as_str(), source.as_str(), max) {
            return Err(BulkRefusal::TooManyClasses { max });
        }
        let sequence = self.next_sequence();
        let (queue, messages) = self.parts(to);
        queue.promote(messages, now);
        let mut progress = self.messages.progress(slot);
        lifecycle::arrive(&mut progress, sequence, now);
        self.count(from, Verb::Move);
        self.totals(to).moved_in += 1;
        let origin = Some(self.queue(from).queue.name.clone());
        self.change(slot, progress, Some(to), Link { origin, ..Link::default() });
        Ok(())
    }
}
