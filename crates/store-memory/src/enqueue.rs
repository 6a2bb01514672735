//! enqueue: nothing → ready | delayed.

use redrive_core::lifecycle::{self, Verb};
use redrive_core::message::{MessageId, Phase};
use redrive_core::time::Timestamp;
use redrive_store::{Batch, EnqueueItem, EnqueueOutcome, EnqueueRefusal};

use crate::state::State;

impl State {
    pub(crate) fn enqueue(&mut self, now: Timestamp, batch: Batch<EnqueueItem>) -> Vec<EnqueueOutcome> {
        let taken = |outcome: &EnqueueOutcome| !matches!(outcome, EnqueueOutcome::Refused(_));
        let one = |state: &mut Self, item| state.enqueue_one(now, item);
        self.apply(batch, one, taken, || EnqueueOutcome::Aborted)
    }

    fn enqueue_one(&mut self, now: Timestamp, item: EnqueueItem) -> EnqueueOutcome {
        match self.admit(now, &item) {
            Err(refusal) => return EnqueueOutcome::Refused(refusal),
            Ok(Some(id)) => return EnqueueOutcome::Duplicate { id },
            Ok(None) => {}
        }
        let sequence = self.next_sequence();
        let message = lifecycle::enqueue(item.draft, item.queue, sequence, now);
        let (id, visible_at) = (message.id(), message.progress.visible_at);
        if let Some(queue) = self.queues.get_mut(&message.queue) {
            queue.hold(id, message.spec.dedup.as_ref(), now);
            queue.totals.count(Verb::Enqueue);
            queue.messages.insert(id, message);
        }
        EnqueueOutcome::Enqueued { id, visible_at }
    }

    /// Whether the queue takes a message: no, or it has it already, or yes. A repeated enqueue is answered with
    /// the first one even where a new one would be refused: the producer must be able to learn that it got in.
    fn admit(&mut self, now: Timestamp, item: &EnqueueItem) -> Result<Option<MessageId>, EnqueueRefusal> {
        let limits = self.options.limits;
        let queue = self.queue_mut(&item.queue)?;
        let spec = &item.draft.spec;
        let same_id = queue.messages.contains_key(&spec.id).then_some(spec.id);
        if let Some(first) = same_id.or_else(|| queue.holder(spec.dedup.as_ref(), now)) {
            queue.totals.duplicates += 1;
            return Ok(Some(first));
        }
        if let Some(max_waiting) = queue.settings.max_waiting
            && queue.messages.values().filter(|message| message.progress.phase == Phase::Waiting).count()
                as u64
                >= max_waiting.get()
        {
            return Err(EnqueueRefusal::QueueFull { max_waiting: max_waiting.get() });
        }
        if !queue.takes_class(&spec.kind, &spec.source, limits.classes_per_queue) {
            return Err(EnqueueRefusal::TooManyClasses { max: limits.classes_per_queue });
        }
        if spec.dedup.is_some() && queue.holds(now) >= limits.dedup_keys_per_queue {
            return Err(EnqueueRefusal::TooManyDedupKeys { max: limits.dedup_keys_per_queue });
        }
        Ok(None)
    }
}
