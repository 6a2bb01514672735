//! enqueue: nothing → ready | delayed.

use redrive_core::lifecycle::{self, Verb};
use redrive_core::message::MessageId;
use redrive_core::time::Timestamp;
use redrive_store::{Batch, EnqueueItem, EnqueueOutcome, EnqueueRefusal};

use crate::core::Core;
use crate::format::message::Until;
use crate::state::ids;

/// What a message takes in the journal beyond what it carries, at most about so many bytes.
const OVERHEAD_BYTES: usize = 256;

/// The dedup key of a new message, and until when it is held.
type Key = Option<(u128, Until)>;

/// What an enqueue writes, at most about so many bytes.
pub(crate) fn enqueue_bytes(batch: &Batch<EnqueueItem>) -> usize {
    let one = |item: &EnqueueItem| {
        let spec = &item.draft.spec;
        let names = spec.kind.as_str().len() + spec.source.as_str().len() + spec.fairness_key.as_str().len();
        let dedup = spec.dedup.as_ref().map_or(0, |dedup| dedup.key.as_str().len());
        let headers = spec.headers.size() + spec.headers.iter().count() * 8;
        spec.body.bytes().len() + headers + names + dedup + spec.content_type.as_str().len() + OVERHEAD_BYTES
    };
    batch.items().iter().map(one).sum()
}

impl Core {
    pub(crate) fn enqueue(&mut self, now: Timestamp, batch: Batch<EnqueueItem>) -> Vec<EnqueueOutcome> {
        let taken = |outcome: &EnqueueOutcome| !matches!(outcome, EnqueueOutcome::Refused(_));
        let one = |core: &mut Self, item| core.enqueue_one(now, item);
        self.apply(batch, one, taken, || EnqueueOutcome::Aborted)
    }

    fn enqueue_one(&mut self, now: Timestamp, item: EnqueueItem) -> EnqueueOutcome {
        let number = match self.number(&item.queue) {
            Ok(number) => number,
            Err(missing) => return EnqueueOutcome::Refused(missing.into()),
        };
        let (queue, messages) = self.parts(number);
        queue.promote(messages, now);
        self.forget_keys(number, now);
        let key = item.draft.spec.dedup.as_ref().map(|dedup| self.hold_of(number, dedup, now));
        match self.admits(number, &item, key) {
            Err(refusal) => return EnqueueOutcome::Refused(refusal),
            Ok(Some(id)) => {
                self.totals(number).duplicates += 1;
                return EnqueueOutcome::Duplicate { id };
            }
            Ok(None) => {}
        }
        let sequence = self.next_sequence();
        let message = lifecycle::enqueue(item.draft, item.queue, sequence, now);
        self.count(number, Verb::Enqueue);
        self.admit_message(&message, number, key);
        EnqueueOutcome::Enqueued { id: message.id(), visible_at: message.progress.visible_at }
    }

    /// Whether the queue takes a message: no, or it has it already, or yes. A repeated enqueue is answered with
    /// the first one even where a new one would be refused: the producer must be able to learn that it got in.
    fn admits(&self, number: u32, item: &EnqueueItem, key: Key) -> Result<Option<MessageId>, EnqueueRefusal> {
        let limits = self.options.limits;
        let queue = self.queue(number);
        let spec = &item.draft.spec;
        if queue.ids.get(ids::number(spec.id)).is_some() {
            return Ok(Some(spec.id));
        }
        if let Some(hold) = key.and_then(|(digest, _)| queue.holds.get(digest)) {
            return Ok(Some(ids::id(hold.message())));
        }
        if let Some(max_waiting) = queue.settings.max_waiting
            && queue.waiting >= max_waiting.get()
        {
            return Err(EnqueueRefusal::QueueFull { max_waiting: max_waiting.get() });
        }
        if !queue.takes_class(spec.kind.as_str(), spec.source.as_str(), limits.classes_per_queue) {
            return Err(EnqueueRefusal::TooManyClasses { max: limits.classes_per_queue });
        }
        if key.is_some() && queue.holds.len() >= limits.dedup_keys_per_queue {
            return Err(EnqueueRefusal::TooManyDedupKeys { max: limits.dedup_keys_per_queue });
        }
        Ok(None)
    }
}
