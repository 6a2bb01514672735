//! reschedule: ready ↔ delayed, or another priority.

use redrive_core::lifecycle::{self, Reschedule, Verb};
use redrive_core::time::Timestamp;
use redrive_store::{Bulk, QueueError, Selection};

use crate::core::Core;
use crate::format::message::Link;
use crate::state::entry::Stage;

impl Core {
    pub(crate) fn reschedule(
        &mut self,
        now: Timestamp,
        selection: &Selection,
        change: Reschedule,
    ) -> Result<Bulk, QueueError> {
        change.check()?;
        self.bulk(now, selection, Stage::is_waiting, |core, slot| {
            let sequence = core.next_sequence();
            let mut progress = core.messages.progress(slot);
            if lifecycle::reschedule(&mut progress, &change, sequence, now) {
                core.count(core.messages.at(slot).queue, Verb::Reschedule);
                core.change(slot, progress, None, Link::default());
            }
            Ok(())
        })
    }
}
