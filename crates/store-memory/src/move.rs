//! move: any but leased → another queue.

use redrive_core::invalid::Invalid;
use redrive_core::lifecycle::{self, Verb};
use redrive_core::message::MessageId;
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::{Bulk, BulkRefusal, QueueError, Selection};

use crate::state::State;

impl State {
    pub(crate) fn move_to(
        &mut self,
        now: Timestamp,
        selection: &Selection,
        target: &QueueName,
    ) -> Result<Bulk, QueueError> {
        self.queue(target)?;
        if *target == selection.queue {
            return Err(Invalid::unusable("target", "must be another queue").into());
        }
        let free = |message: &redrive_core::message::Message| lifecycle::may_move(&message.progress);
        self.bulk(now, selection, free, |state, id| state.carry(&selection.queue, target, id, now))
    }

    /// Takes a message from one queue to another in one step, counted in both.
    pub(crate) fn carry(
        &mut self,
        from: &QueueName,
        to: &QueueName,
        id: MessageId,
        now: Timestamp,
    ) -> Result<(), BulkRefusal> {
        let max = self.options.limits.classes_per_queue;
        let message = self.queues.get(from).and_then(|queue| queue.messages.get(&id));
        let (Some(message), Some(target)) = (message, self.queues.get(to)) else {
            return Err(BulkRefusal::NotFound);
        };
        if target.messages.contains_key(&id) {
            return Err(BulkRefusal::Duplicate(id));
        }
        if !target.takes_class(&message.spec.kind, &message.spec.source, max) {
            return Err(BulkRefusal::TooManyClasses { max });
        }
        let mut message = message.clone();
        if let Some(source) = self.queues.get_mut(from) {
            source.let_go(&message);
            source.messages.remove(&id);
            source.totals.count(Verb::Move);
        }
        let sequence = self.next_sequence();
        lifecycle::move_to(&mut message, to.clone(), sequence, now);
        if let Some(target) = self.queues.get_mut(to) {
            target.totals.moved_in += 1;
            target.messages.insert(id, message);
        }
        Ok(())
    }
}
