//! Everything that is with a consumer, in whichever queue.

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use redrive_core::access::{On, Use};
use redrive_core::invalid::Invalid;
use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::Terms;
use redrive_core::message::{Message, MessageId, State};
use redrive_core::queue::{Queue, QueueName};
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{Filter, Limit, ListRequest, Page, QueueError};

use crate::access::Caller;
use crate::broker::Broker;
use crate::error::BrokerError;

/// Over how long rates are told.
pub(super) const MINUTE: Millis = Millis::from_secs(60);
/// Most looks into queues that one call takes.
const LOOKS_MAX: usize = 1_000;

/// Where a page of leases ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseCursor {
    /// In which queue.
    pub queue: QueueName,
    /// Behind which message; `None` is behind the whole queue.
    pub after: Option<MessageId>,
}

impl fmt::Display for LeaseCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.queue)?;
        self.after.map_or(Ok(()), |after| write!(f, "{after}"))
    }
}

impl FromStr for LeaseCursor {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let wrong = || Invalid::unusable("cursor", "must be the next_cursor of a page");
        // No name of a queue has a colon.
        let (queue, after) = text.split_once(':').ok_or_else(wrong)?;
        let after = if after.is_empty() { None } else { Some(after.parse()?) };
        Ok(Self { queue: QueueName::new(queue)?, after })
    }
}

/// Which leases somebody wants to see.
#[derive(Debug, Clone)]
pub struct LeasesWanted {
    /// Of this consumer only.
    pub consumer: Option<ConsumerName>,
    /// In a queue: behind this message.
    pub after: Option<MessageId>,
    /// At most so many.
    pub limit: Limit,
}

impl Default for LeasesWanted {
    fn default() -> Self {
        Self { consumer: None, after: None, limit: Limit::MAX }
    }
}

/// A message that is with a consumer.
#[derive(Debug, Clone)]
pub struct LeaseOfQueue {
    /// The message, with its lease.
    pub message: Message,
    /// The cap on its attempts that is in force.
    pub max_attempts: Option<NonZeroU32>,
}

/// A page of what is with consumers.
#[derive(Debug, Clone)]
pub struct LeasesOfQueues {
    /// When.
    pub at: Timestamp,
    /// By queue and by id.
    pub leases: Vec<LeaseOfQueue>,
    /// Where the next page begins. A page may be short, or empty, and still have a next.
    pub next: Option<LeaseCursor>,
}

impl Broker {
    /// A page of what is leased of a queue; `None` where there is no such queue.
    pub(super) async fn leases_of(
        &self,
        queue: &QueueName,
        wanted: &LeasesWanted,
    ) -> Result<Option<Page>, BrokerError> {
        let consumers = wanted.consumer.iter().cloned().collect();
        let filter = Filter { consumers, ..Filter::state(State::Leased) };
        let request = ListRequest {
            after: wanted.after,
            limit: wanted.limit,
            ..ListRequest::new(queue.clone(), filter)
        };
        match self.list(request).await {
            Ok(page) => Ok(Some(page)),
            Err(BrokerError::Queue(QueueError::NotFound(_))) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// What is still to be looked into.
struct Left {
    queues: VecDeque<Queue>,
    /// The last queue that is known; `None` where there are no more behind it.
    known_to: Option<QueueName>,
    /// How many more looks there may be.
    looks: usize,
}

impl Caller {
    /// A page of what is with consumers, of one queue or of all that the caller may inspect.
    pub async fn leases(
        &self,
        queue: Option<QueueName>,
        wanted: LeasesWanted,
        from: Option<LeaseCursor>,
    ) -> Result<LeasesOfQueues, BrokerError> {
        let broker = self.may(Use::Look, On::Some)?;
        let mut left = match queue {
            Some(queue) => {
                let found = self.may(Use::Inspect, &queue)?.get_queue(&queue).await?;
                if from.as_ref().is_some_and(|from| from.queue != queue || from.after.is_none()) {
                    return Err(
                        Invalid::unusable("cursor", "must be that of a page of the same queue").into()
                    );
                }
                Left { queues: VecDeque::from([found]), known_to: None, looks: LOOKS_MAX }
            }
            None => self.queues_from(broker, from.as_ref()).await?,
        };
        let mut page = LeasesOfQueues { at: broker.now(), leases: Vec::new(), next: None };
        let mut after = from.and_then(|from| Some((from.queue, from.after?)));
        while let Some(queue) = left.queues.pop_front() {
            let behind = after.take().filter(|(name, _)| *name == queue.name).map(|(_, id)| id);
            page.next = look_into(broker, &queue, (&wanted, behind), &mut left.looks, &mut page).await?;
            let full = page.leases.len() == wanted.limit.get() || left.looks == 0;
            if page.next.is_some() {
                break;
            }
            self.know_the_next(broker, &mut left).await?;
            if full && !left.queues.is_empty() {
                page.next = Some(LeaseCursor { queue: queue.name, after: None });
                break;
            }
        }
        Ok(page)
    }

    /// The queues from where the last page ended; that one itself where it had more.
    async fn queues_from(&self, broker: &Broker, from: Option<&LeaseCursor>) -> Result<Left, BrokerError> {
        let known_to = from.map(|from| from.queue.clone());
        let mut left = Left { queues: VecDeque::new(), known_to, looks: LOOKS_MAX };
        match from {
            Some(LeaseCursor { queue, after: Some(_) }) if self.sees(Use::Inspect, queue) => {
                // It may be gone since, and then its leases are, too.
                left.queues.extend(broker.store().get_queue(queue).await?);
            }
            Some(_) => {}
            None => self.more_queues(broker, &mut left).await?,
        }
        self.know_the_next(broker, &mut left).await?;
        Ok(left)
    }

    async fn more_queues(&self, broker: &Broker, left: &mut Left) -> Result<(), BrokerError> {
        let page = broker.list_queues(left.known_to.as_ref(), Limit::MAX).await?;
        left.known_to =
            page.last().map(|queue| queue.name.clone()).filter(|_| page.len() == Limit::MAX.get());
        left.queues.extend(page.into_iter().filter(|queue| self.sees(Use::Inspect, &queue.name)));
        Ok(())
    }

    /// Finds out which queue is next, if there is one.
    async fn know_the_next(&self, broker: &Broker, left: &mut Left) -> Result<(), BrokerError> {
        while left.queues.is_empty() && left.known_to.is_some() {
            self.more_queues(broker, left).await?;
        }
        Ok(())
    }
}

/// Adds the leases of a queue to a page; answers where the next page begins, if it does in this queue.
async fn look_into(
    broker: &Broker,
    queue: &Queue,
    (wanted, mut after): (&LeasesWanted, Option<MessageId>),
    looks: &mut usize,
    page: &mut LeasesOfQueues,
) -> Result<Option<LeaseCursor>, BrokerError> {
    let settings = queue.config.over(&broker.config().defaults);
    while *looks > 0 {
        let Ok(limit) = Limit::new(wanted.limit.get() - page.leases.len()) else { break };
        let some = LeasesWanted { consumer: wanted.consumer.clone(), after, limit };
        *looks -= 1;
        let Some(found) = broker.leases_of(&queue.name, &some).await? else { return Ok(None) };
        page.at = page.at.max(found.at);
        page.leases.extend(found.messages.into_iter().map(|message| {
            let terms = Terms::new(&settings, message.spec.max_attempts);
            LeaseOfQueue { max_attempts: terms.policy.max_attempts, message }
        }));
        after = found.next;
        if after.is_none() {
            return Ok(None);
        }
    }
    Ok(Some(LeaseCursor { queue: queue.name.clone(), after }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written_and_nothing_else_is() {
        let queue = QueueName::new("a.b-c_d").unwrap();
        for after in [None, Some(MessageId::MIN)] {
            let cursor = LeaseCursor { queue: queue.clone(), after };
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for text in ["", "jobs", ":", "jobs:x", "jo bs:", "jobs:01987654-3210-7abc-8def-0123456789ab:"] {
            assert!(text.parse::<LeaseCursor>().is_err(), "{text}");
        }
    }
}
