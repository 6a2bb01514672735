//! One step over the messages of a queue that match: what redrive, discard, move and reschedule have in common.

use redrive_core::time::Timestamp;
use redrive_store::{Bulk, BulkRefusal, QueueError, Selection};

use crate::core::Core;
use crate::select::Search;
use crate::state::entry::Stage;

impl Core {
    /// Applies `one` to each message that is selected and that `starts` allows.
    pub(crate) fn bulk(
        &mut self,
        now: Timestamp,
        selection: &Selection,
        starts: impl Fn(Stage) -> bool,
        mut one: impl FnMut(&mut Self, u32) -> Result<(), BulkRefusal>,
    ) -> Result<Bulk, QueueError> {
        selection.check()?;
        let search = Search {
            queue: self.number(&selection.queue)?,
            filter: &selection.filter,
            after: selection.after,
            until: selection.until,
            newest_first: false,
            limit: selection.limit.get(),
            bytes: usize::MAX,
        };
        let selected = self.select(now, &search, starts);
        let matched = selected.slots.len() as u64;
        let mut bulk = Bulk { matched, next: selected.next, ..Bulk::default() };
        if selection.dry_run {
            return Ok(bulk);
        }
        for slot in selected.slots {
            let id = self.id(slot);
            match one(self, slot) {
                Ok(()) => bulk.applied.push(id),
                Err(refusal) => bulk.refused.push((id, refusal)),
            }
        }
        Ok(bulk)
    }
}
