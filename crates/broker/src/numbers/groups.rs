//! What died of what, in whichever queue.

use redrive_core::access::{On, Use};
use redrive_core::message::State;
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::{FailureGroup, Limit, QueueError};

use super::deaths::DEATH_MINUTES;
use crate::access::Caller;
use crate::broker::Broker;
use crate::error::BrokerError;

/// A group of dead messages of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupOfQueue {
    /// The queue.
    pub queue: QueueName,
    /// The group.
    pub group: FailureGroup,
    /// How many died in each of the last minutes at this instance, the oldest first.
    pub deaths: [u64; DEATH_MINUTES],
}

/// Groups of dead messages, the largest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupsOfQueues {
    /// The groups.
    pub groups: Vec<GroupOfQueue>,
    /// Whether every queue was looked at, and no group left out.
    pub complete: bool,
}

impl Broker {
    /// Groups of dead messages of a queue whose errors are alike, the largest first.
    pub async fn failure_groups(
        &self,
        queue: &QueueName,
        limit: Limit,
    ) -> Result<Vec<GroupOfQueue>, BrokerError> {
        let groups = self.store.failure_groups(queue, limit).await?;
        let now = self.now();
        Ok(groups.into_iter().map(|group| self.with_deaths(queue, group, now)).collect())
    }

    fn with_deaths(&self, queue: &QueueName, group: FailureGroup, now: Timestamp) -> GroupOfQueue {
        let deaths = self.deaths.of(queue, group.fingerprint, now);
        GroupOfQueue { queue: queue.clone(), group, deaths }
    }
}

impl Caller {
    /// Groups of dead messages of all queues that the caller may inspect, the largest first. Queues beyond those that are
    /// sampled are not looked at.
    pub async fn failure_groups(&self, limit: Limit) -> Result<GroupsOfQueues, BrokerError> {
        let broker = self.may(Use::Look, On::Some)?;
        // One more than is wanted shows whether there are more.
        let asked = Limit::new(limit.get() + 1).unwrap_or(limit);
        let look = broker.look_at_queues().await?;
        let mut complete = self.sees_no_more(broker, &look).await?;
        let mut groups = Vec::new();
        for stats in look.stats.iter().filter(|stats| stats.states.of(State::Dead) > 0) {
            let queue = &stats.queue.name;
            if !self.sees(Use::Inspect, queue) {
                continue;
            }
            match broker.failure_groups(queue, asked).await {
                // The largest of all are among the largest of each.
                Ok(some) => {
                    complete &= some.len() < asked.get();
                    groups.extend(some);
                }
                // It went since it was looked at.
                Err(BrokerError::Queue(QueueError::NotFound(_))) => {}
                Err(error) => return Err(error),
            }
            groups.sort_by_key(|one| std::cmp::Reverse(one.group.messages));
            complete &= groups.len() <= limit.get();
            groups.truncate(limit.get());
        }
        Ok(GroupsOfQueues { groups, complete })
    }
}
