//! Dead letters of a subscription: those of its own queue, and the events of sequential topics that died on their way through
//! it, or before they reached it.

use redrive_broker::{NewOperation, Operation, Work};
use redrive_core::message::{DeadReason, Message, MessageId, State as MessageState};
use redrive_core::queue::QueueName;
use redrive_core::subscription::SubscriptionId;
use redrive_store::{Filter, Limit, ListRequest};

use crate::bus::Bus;
use crate::dispatch::SequencePoint;
use crate::error::BusError;
use crate::event::Event;
use crate::subscription::Subscription;
use crate::topic::TopicSettings;

/// An event that is dead for a subscription.
#[derive(Debug, Clone)]
pub struct DeadDelivery {
    /// The message, in the queue where it died.
    pub message: Message,
    /// Why it is dead for this subscription: [`DeadReason::NotReached`], where it died before its turn came.
    pub reason: DeadReason,
}

impl DeadDelivery {
    /// The event that it is.
    pub fn event(&self) -> Event {
        Event::of(&self.message)
    }
}

/// Where a page of dead letters ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadCursor {
    /// In which queue.
    pub queue: QueueName,
    /// Behind which message; `None` is from its beginning.
    pub after: Option<MessageId>,
}

impl Bus {
    /// The queues in which events of a subscription may be dead: its own, and those of sequential topics.
    fn dead_places(&self, subscription: &Subscription) -> Vec<QueueName> {
        let own = subscription.owns_queue().then(|| subscription.queue());
        own.into_iter().chain(self.view().topics().map(TopicSettings::sequence_queue)).collect()
    }

    /// A page of the events that are dead for a subscription, and where the next page begins.
    pub async fn dead(
        &self,
        id: &SubscriptionId,
        from: Option<DeadCursor>,
        limit: Limit,
    ) -> Result<(Vec<DeadDelivery>, Option<DeadCursor>), BusError> {
        let subscription = self.subscription(id).await?;
        let mut places = self.dead_places(&subscription).into_iter().peekable();
        let mut after = None;
        if let Some(from) = from {
            while places.peek().is_some_and(|queue| *queue != from.queue) {
                places.next();
            }
            after = from.after;
        }
        let mut found = Vec::new();
        for queue in places {
            loop {
                let filter = Filter::state(MessageState::Dead);
                let request = ListRequest { after, limit, ..ListRequest::new(queue.clone(), filter) };
                let page = match self.broker.list(request).await {
                    Ok(page) => page,
                    Err(error) if error.code() == "QUEUE_NOT_FOUND" => break,
                    Err(error) => return Err(error.into()),
                };
                for message in page.messages {
                    after = Some(message.id());
                    found.extend(self.dead_for(&subscription, message));
                    if found.len() == limit.get() {
                        return Ok((found, Some(DeadCursor { queue, after })));
                    }
                }
                if page.next.is_none() {
                    break;
                }
            }
            after = None;
        }
        Ok((found, None))
    }

    /// What a dead message is to a subscription; nothing where it got it, or never wanted it.
    fn dead_for(&self, subscription: &Subscription, message: Message) -> Option<DeadDelivery> {
        let reason = message.progress.death()?.reason;
        if SubscriptionId::of_queue(&message.queue).is_some() {
            return Some(DeadDelivery { message, reason });
        }
        if !self.is_left_for(subscription, &message) {
            return None;
        }
        let failed = failed_at(&message).is_some_and(|id| id == subscription.id.as_str());
        let reason = if failed { reason } else { DeadReason::NotReached };
        Some(DeadDelivery { message, reason })
    }

    /// Whether an event of a sequential topic is still to come to a subscription.
    pub(crate) fn is_left_for(&self, subscription: &Subscription, message: &Message) -> bool {
        let point = SequencePoint::of(message);
        let mut left = self.sequence_of(message).into_iter().filter(|one| !point.is_done(one.order));
        left.any(|one| one.id == subscription.id)
    }

    /// Brings what is dead for a subscription back. Its own dead letters are brought to it alone; an event of a sequential
    /// topic that died there goes on there, to it and to those behind it.
    pub async fn redrive(
        &self,
        id: &SubscriptionId,
        filter: Filter,
        work: Work,
        rate: Option<u32>,
    ) -> Result<Vec<Operation>, BusError> {
        let mut started = Vec::new();
        for new in self.redrives(id, filter, work, rate).await? {
            started.push(self.broker.start_operation(new).await?);
        }
        Ok(started)
    }

    /// How many events that would bring back.
    pub async fn redrive_dry_run(
        &self,
        id: &SubscriptionId,
        filter: Filter,
        work: Work,
    ) -> Result<u64, BusError> {
        let mut matched = 0;
        for new in self.redrives(id, filter, work, None).await? {
            matched += self.broker.dry_run(&new).await?;
        }
        Ok(matched)
    }

    /// The operations that it takes, one for each queue that has something for it.
    async fn redrives(
        &self,
        id: &SubscriptionId,
        filter: Filter,
        work: Work,
        rate: Option<u32>,
    ) -> Result<Vec<NewOperation>, BusError> {
        let subscription = self.subscription(id).await?;
        let mut operations = Vec::new();
        for queue in self.dead_places(&subscription) {
            let own = SubscriptionId::of_queue(&queue).is_some();
            let mut filter = Filter { states: vec![MessageState::Dead], ..filter.clone() };
            if !own {
                // The errors of a sequence begin with who failed.
                filter.error = Some(format!("[{id}] {}", filter.error.unwrap_or_default()));
            }
            let (work, rate) = (work.clone(), rate);
            let new = NewOperation { queue, filter, work, rate };
            match self.broker.dry_run(&new).await {
                Ok(0) if !own => {}
                Ok(_) => operations.push(new),
                Err(error) if error.code() == "QUEUE_NOT_FOUND" => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(operations)
    }
}

/// Who failed, where an event of a sequence died.
fn failed_at(message: &Message) -> Option<&str> {
    let error = message.history.last_error.as_ref()?.as_str();
    Some(error.strip_prefix('[')?.split_once(']')?.0)
}
