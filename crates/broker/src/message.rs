//! Messages: look, and what an operator does to a few of them at once. Many are an operation.

use redrive_core::lifecycle::Reschedule;
use redrive_core::message::{Message, MessageId, Note};
use redrive_core::queue::QueueName;
use redrive_store::{Bulk, ListRequest, Page, Selection};

use crate::broker::Broker;
use crate::error::BrokerError;
use crate::events::{Act, Happening, Trigger};

impl Broker {
    /// A message.
    pub async fn get(&self, queue: &QueueName, id: MessageId) -> Result<Message, BrokerError> {
        self.live(queue).await?;
        let message = self.store.get(queue, id).await?;
        message.ok_or_else(|| BrokerError::MessageNotFound(queue.clone()))
    }

    /// A page of messages that match.
    pub async fn list(&self, request: ListRequest) -> Result<Page, BrokerError> {
        request.check()?;
        Ok(self.store.list(self.at(), request).await?)
    }

    /// any but leased → gone; by force leased ones too. One step.
    pub async fn discard(&self, selection: Selection, force: bool) -> Result<Bulk, BrokerError> {
        let queue = selection.queue.clone();
        let dry_run = selection.dry_run;
        let bulk = self.store.discard(self.at(), selection, force).await?;
        if force && !dry_run {
            self.forget_attempts(&queue, &bulk.applied);
        }
        self.tell_bulk(Happening::Queue(Act::Discarded), &queue, &bulk, dry_run);
        Ok(bulk)
    }

    /// any but leased → another queue. One step.
    pub async fn move_to(&self, selection: Selection, target: QueueName) -> Result<Bulk, BrokerError> {
        let queue = selection.queue.clone();
        let dry_run = selection.dry_run;
        let bulk = self.store.move_to(self.at(), selection, target.clone()).await?;
        self.tell_bulk(Happening::Queue(Act::Moved), &queue, &bulk, dry_run);
        self.wake_queue(&target);
        Ok(bulk)
    }

    /// dead → ready. One step.
    pub async fn redrive(&self, selection: Selection, by: Note, reason: Note) -> Result<Bulk, BrokerError> {
        let (queue, dry_run) = (selection.queue.clone(), selection.dry_run);
        let bulk = self.store.redrive(self.at(), selection, by, reason).await?;
        self.tell_bulk(Happening::Requeue, &queue, &bulk, dry_run);
        if !dry_run {
            self.wake_queue(&queue);
        }
        Ok(bulk)
    }

    /// ready ↔ delayed, or another priority. One step.
    pub async fn reschedule(&self, selection: Selection, change: Reschedule) -> Result<Bulk, BrokerError> {
        let queue = selection.queue.clone();
        let dry_run = selection.dry_run;
        let bulk = self.store.reschedule(self.at(), selection, change).await?;
        self.tell_bulk(Happening::Queue(Act::Rescheduled), &queue, &bulk, dry_run);
        self.wake_queue(&queue);
        Ok(bulk)
    }

    pub(crate) fn tell_bulk(&self, what: Happening, queue: &QueueName, bulk: &Bulk, dry_run: bool) {
        let count = bulk.applied.len() as u64;
        if !dry_run && count > 0 {
            self.events.tell(what, queue, count, Trigger::Operator, self.now());
        }
    }

    /// Something may be ready in a queue, or due at another time.
    pub(crate) fn wake_queue(&self, queue: &QueueName) {
        if let Some(live) = self.queues.known(queue) {
            live.due_changed.notify_one();
            live.wake();
        }
        self.tell_ready(queue);
    }
}
