//! Queues: create, update, delete, pause, look.

use redrive_core::queue::{Queue, QueueConfig, QueueName, Weights};
use redrive_core::subscription::is_reserved;
use redrive_store::{
    CreateQueue, DeleteQueue, Limit, PauseQueue, QueueError, QueueNotFound, QueueStats, UpdateQueue,
};

use crate::broker::Broker;
use crate::error::BrokerError;
use crate::events::{Act, Happening, Trigger};

impl Broker {
    fn tell_queue(&self, act: Act, queue: &QueueName) {
        self.events.tell(Happening::Queue(act), queue, 0, Trigger::Operator, self.now());
    }

    /// Creates a queue. The names of the bus are its own.
    pub async fn create_queue(&self, request: CreateQueue) -> Result<Queue, BrokerError> {
        not_reserved(&request.name)?;
        self.create_queue_unasked(request).await
    }

    pub(crate) async fn create_queue_unasked(&self, request: CreateQueue) -> Result<Queue, BrokerError> {
        let queue = self.store.create_queue(self.at(), request).await?;
        self.note_queue(&queue);
        self.tell_queue(Act::Created, &queue.name);
        Ok(queue)
    }

    /// Changes the configuration of a queue. What is over a cap that was lowered is lapsed by the sweeper, which is
    /// told.
    pub async fn update_queue(&self, request: UpdateQueue) -> Result<Queue, BrokerError> {
        not_reserved(&request.name)?;
        self.update_queue_unasked(request).await
    }

    pub(crate) async fn update_queue_unasked(&self, request: UpdateQueue) -> Result<Queue, BrokerError> {
        let live = self.queues.known(&request.name);
        let breaker = live.as_ref().and_then(|live| live.settings().breaker);
        let queue = self.store.update_queue(self.at(), request).await?;
        self.note_queue(&queue);
        if let Some(live) = live.filter(|live| live.settings().breaker != breaker) {
            self.forget_row(&live).await;
        }
        self.sweep_sooner.notify_waiters();
        self.tell_queue(Act::Updated, &queue.name);
        Ok(queue)
    }

    /// Sets how many messages each fairness key of a queue is served in its turn, and nothing else.
    pub async fn set_weights(&self, name: QueueName, weights: Weights) -> Result<Queue, BrokerError> {
        loop {
            let queue = self.get_queue(&name).await?;
            let config = QueueConfig { weights: Some(weights.clone()), ..queue.config };
            let update = UpdateQueue { name: name.clone(), config, expected: Some(queue.version) };
            match self.update_queue(update).await {
                // Somebody else changed it meanwhile: what they set must not be lost.
                Err(BrokerError::Queue(QueueError::VersionMismatch { .. })) => {}
                updated => return updated,
            }
        }
    }

    /// Deletes a queue; by force, its messages and their leases with it.
    pub async fn delete_queue(&self, request: DeleteQueue) -> Result<(), BrokerError> {
        not_reserved(&request.name)?;
        self.delete_queue_unasked(request).await
    }

    pub(crate) async fn delete_queue_unasked(&self, request: DeleteQueue) -> Result<(), BrokerError> {
        let live = self.live(&request.name).await?;
        self.store.delete_queue(self.at(), request).await?;
        self.forget_queue(&live);
        self.tell_queue_changed(&live.name);
        self.forget_row(&live).await;
        self.tell_queue(Act::Deleted, &live.name);
        Ok(())
    }

    /// Pauses or resumes a queue or one fairness key of it.
    pub async fn pause_queue(&self, request: PauseQueue) -> Result<Queue, BrokerError> {
        let act = if request.pause.is_some() { Act::Paused } else { Act::Resumed };
        let queue = self.store.pause_queue(self.at(), request).await?;
        self.note_queue(&queue);
        self.tell_queue(act, &queue.name);
        Ok(queue)
    }

    /// A queue.
    pub async fn get_queue(&self, name: &QueueName) -> Result<Queue, BrokerError> {
        self.store.get_queue(name).await?.ok_or_else(|| QueueNotFound(name.clone()).into())
    }

    /// Queues by name, after the one given.
    pub async fn list_queues(
        &self,
        after: Option<&QueueName>,
        limit: Limit,
    ) -> Result<Vec<Queue>, BrokerError> {
        Ok(self.store.list_queues(after, limit).await?)
    }

    /// A queue at this moment.
    pub async fn stats(&self, name: &QueueName) -> Result<QueueStats, BrokerError> {
        Ok(self.store.stats(self.at(), name).await?)
    }
}

/// What belongs to a subscription is created, changed and deleted with it.
fn not_reserved(name: &QueueName) -> Result<(), BrokerError> {
    if is_reserved(name) { Err(BrokerError::QueueOfBus(name.clone())) } else { Ok(()) }
}
