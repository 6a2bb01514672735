//! redrive: dead → ready.

use redrive_core::lifecycle::{self, Verb};
use redrive_core::message::{MessageId, Note, RedriveNote, Uniqueness};
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::{Bulk, BulkRefusal, QueueError, Selection};

use crate::state::State;

impl State {
    pub(crate) fn redrive(
        &mut self,
        now: Timestamp,
        selection: &Selection,
        by: &Note,
        reason: &Note,
    ) -> Result<Bulk, QueueError> {
        let dead = |message: &redrive_core::message::Message| message.progress.death().is_some();
        self.bulk(now, selection, dead, |state, id| {
            let note = RedriveNote { at: now, by: by.clone(), reason: reason.clone() };
            state.redrive_one(now, &selection.queue, id, note)
        })
    }

    fn redrive_one(
        &mut self,
        now: Timestamp,
        name: &QueueName,
        id: MessageId,
        note: RedriveNote,
    ) -> Result<(), BulkRefusal> {
        let sequence = self.next_sequence();
        let max = self.options.limits.dedup_keys_per_queue;
        let Some(queue) = self.queues.get_mut(name) else {
            return Ok(());
        };
        let Some(dedup) = queue.messages.get(&id).map(|message| message.spec.dedup.clone()) else {
            return Ok(());
        };
        let unique = dedup.filter(|dedup| dedup.unique == Uniqueness::UntilDone);
        if let Some(holder) = queue.holder(unique.as_ref(), now) {
            return Err(BulkRefusal::Duplicate(holder));
        }
        if unique.is_some() && queue.holds(now) >= max {
            return Err(BulkRefusal::TooManyDedupKeys { max });
        }
        queue.hold(id, unique.as_ref(), now);
        if let Some(message) = queue.messages.get_mut(&id)
            && lifecycle::redrive(&mut message.progress, sequence, now)
        {
            message.history.redriven = Some(note);
            queue.totals.count(Verb::Redrive);
        }
        Ok(())
    }
}
