//! reschedule: ready ↔ delayed, or another priority.

use redrive_core::lifecycle::{self, Reschedule, Verb};
use redrive_core::message::Phase;
use redrive_core::time::Timestamp;
use redrive_store::{Bulk, QueueError, Selection};

use crate::state::State;

impl State {
    pub(crate) fn reschedule(
        &mut self,
        now: Timestamp,
        selection: &Selection,
        change: Reschedule,
    ) -> Result<Bulk, QueueError> {
        change.check()?;
        let waits = |message: &redrive_core::message::Message| message.progress.phase == Phase::Waiting;
        self.bulk(now, selection, waits, |state, id| {
            let sequence = state.next_sequence();
            if let Some(queue) = state.queues.get_mut(&selection.queue)
                && let Some(message) = queue.messages.get_mut(&id)
                && lifecycle::reschedule(&mut message.progress, &change, sequence, now)
            {
                queue.totals.count(Verb::Reschedule);
            }
            Ok(())
        })
    }
}
