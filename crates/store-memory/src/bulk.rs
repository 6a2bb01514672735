//! One step over the messages of a queue that match: what redrive, discard, move and reschedule have in common.

use std::ops::Bound;

use redrive_core::message::{Message, MessageId};
use redrive_core::time::Timestamp;
use redrive_store::{Bulk, BulkRefusal, QueueError, Selection};

use crate::state::State;

impl State {
    /// Applies `one` to each message that is selected and that `starts` allows.
    pub(crate) fn bulk(
        &mut self,
        now: Timestamp,
        selection: &Selection,
        starts: impl Fn(&Message) -> bool,
        mut one: impl FnMut(&mut Self, MessageId) -> Result<(), BulkRefusal>,
    ) -> Result<Bulk, QueueError> {
        selection.check()?;
        let messages = &self.queue(&selection.queue)?.messages;
        let start = selection.after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut selected: Vec<MessageId> = messages
            .range((start, Bound::Unbounded))
            .take_while(|(id, _)| selection.until.is_none_or(|until| **id <= until))
            .map(|(_, message)| message)
            .filter(|message| selection.filter.matches(message, now) && starts(message))
            .map(Message::id)
            .take(selection.limit.get() + 1)
            .collect();
        let more = selected.len() > selection.limit.get();
        selected.truncate(selection.limit.get());
        let next = selected.last().copied().filter(|_| more);
        let mut bulk = Bulk { matched: selected.len() as u64, next, ..Bulk::default() };
        if selection.dry_run {
            return Ok(bulk);
        }
        for id in selected {
            match one(self, id) {
                Ok(()) => bulk.applied.push(id),
                Err(refusal) => bulk.refused.push((id, refusal)),
            }
        }
        Ok(bulk)
    }
}
