//! What is asked of the queue that a subscription has to itself. One that goes into a plain queue has none: what happens there
//! is that queue's.

use redrive_broker::{BreakerView, GroupOfQueue};
use redrive_core::queue::QueueName;
use redrive_core::subscription::SubscriptionId;
use redrive_store::Limit;

use crate::bus::Bus;
use crate::error::BusError;

impl Bus {
    /// The queue that a subscription has to itself.
    async fn own_queue(&self, id: &SubscriptionId, what: &'static str) -> Result<QueueName, BusError> {
        let subscription = self.subscription(id).await?;
        if !subscription.owns_queue() {
            return Err(BusError::WrongTarget { what, kind: subscription.target.kind() });
        }
        self.ensure_queue(&subscription).await?;
        Ok(subscription.queue())
    }

    /// The breaker of a subscription, where it has one.
    pub async fn breaker(&self, id: &SubscriptionId) -> Result<Option<BreakerView>, BusError> {
        let queue = self.own_queue(id, "breaker").await?;
        Ok(self.broker.breaker(&queue).await?)
    }

    /// Opens or closes the breaker of a subscription.
    pub async fn set_breaker(&self, id: &SubscriptionId, open: bool) -> Result<(), BusError> {
        let queue = self.own_queue(id, "breaker").await?;
        Ok(self.broker.set_breaker(&queue, open).await?)
    }

    /// Groups of events that are dead in the queue of a subscription and whose errors are alike, the largest first.
    pub async fn failure_groups(
        &self,
        id: &SubscriptionId,
        limit: Limit,
    ) -> Result<Vec<GroupOfQueue>, BusError> {
        let queue = self.own_queue(id, "dead letters").await?;
        Ok(self.broker.failure_groups(&queue, limit).await?)
    }
}
