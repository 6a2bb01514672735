//! What the event bus asks of the broker, and nobody else does: it works on queues of its own, waits for them for ever, and
//! runs handlers that have a breaker but no lease.

use redrive_core::message::MessageId;
use redrive_core::policy::{Allowance, Breaker, Outcome, ProbeTicket};
use redrive_core::queue::{Queue, QueueName};
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::Timestamp;
use redrive_store::{
    CreateQueue, DeleteQueue, EnqueueOutcome, EntryKind, Judged, NackItem, Settled, UpdateQueue,
};

use crate::broker::Broker;
use crate::enqueue::NewMessage;
use crate::error::BrokerError;
use crate::events::{Act, Happening, Trigger};
use crate::lease::{Delivery, LeaseCall};
use crate::settle::{Nack, Settlement};

/// Whether something may be tried under a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may.
    Free,
    /// It is the one probe that shows whether the outage is over.
    Probe(ProbeTicket),
    /// It may not. Where it is known when that changes by itself, this is when.
    Wait(Option<Timestamp>),
}

impl Broker {
    /// Enqueues to queues that are there; none comes into being by it.
    pub async fn enqueue_existing(
        &self,
        messages: Vec<NewMessage>,
        all_or_nothing: bool,
    ) -> Result<Vec<Result<EnqueueOutcome, BrokerError>>, BrokerError> {
        Ok(self.enqueue_as(messages, all_or_nothing, false).await?.0)
    }

    /// Leases as soon as there is something, however long that takes. Answers nothing when the broker ends.
    pub async fn lease_when_ready(&self, call: &LeaseCall) -> Result<Vec<Delivery>, BrokerError> {
        let live = self.live(&call.queue).await?;
        live.numbers.asked(self.now());
        let waiter = live.waiters.join(call.interest());
        let messages = tokio::select! {
            biased;
            found = self.look_until(&live, call, &waiter) => found?,
            () = self.stopped() => Vec::new(),
        };
        live.numbers.asked(self.now());
        Ok(self.deliveries(messages))
    }

    /// leased → delayed | ready | dead, where the attempt was the one of a subscription and the queue is not its own.
    pub async fn nack_of(
        &self,
        subscription: &SubscriptionId,
        nack: Nack,
    ) -> Result<Settlement<Judged>, BrokerError> {
        let Nack { receipt, asked, error, checkpoint } = nack;
        let Ok(claim) = self.receipts.open(&receipt) else { return Ok(Settlement::InvalidReceipt) };
        let batch = redrive_store::Batch::one(NackItem { claim, asked, error, checkpoint })?;
        let settled = self.store.nack(self.at(), batch, self.chance.seed()).await?.pop();
        let settled = settled.unwrap_or(Settled::Aborted);
        if let Settled::Applied(judged) = &settled {
            self.tell_failed_of(subscription, judged);
        }
        Ok(Settlement::Answered(settled))
    }

    /// Asks the breaker of a queue whether something may be tried that is no lease of the queue. Who gets a probe says
    /// until when its slot is taken, and either [notes](Self::note_outcome) how it ended or [drops](Self::drop_probe) it.
    pub async fn admit(
        &self,
        queue: &QueueName,
        message: MessageId,
        in_flight: u32,
        deadline: Timestamp,
    ) -> Result<Admission, BrokerError> {
        let live = self.live(queue).await?;
        let allowance = {
            let now = self.now();
            let mut rules = live.rules();
            let Some(breaker) = rules.breaker.as_mut() else { return Ok(Admission::Free) };
            let elapsed = breaker.poll(now);
            let allowance = breaker.allowance(now, in_flight);
            drop(rules);
            self.tell_breaker(&live, elapsed);
            allowance
        };
        match allowance {
            Allowance::Unlimited | Allowance::UpTo(_) => Ok(Admission::Free),
            Allowance::Nothing { until } => Ok(Admission::Wait(until)),
            Allowance::Probe => {
                let reserve = |breaker: &mut Breaker, now| {
                    let ticket = breaker.reserve_probe(now);
                    let filled = ticket.filter(|ticket| breaker.probe_leased(*ticket, message, deadline));
                    (filled, None)
                };
                let ticket = self.act_on_breaker(&live, reserve).await?.flatten();
                Ok(ticket.map_or(Admission::Wait(self.probe_until(&live)), Admission::Probe))
            }
        }
    }

    /// The breaker of a queue hears how something ended that was [admitted](Self::admit) at `began`.
    pub fn note_outcome(&self, queue: &QueueName, began: Timestamp, message: MessageId, outcome: Outcome) {
        self.record(queue, self.now(), began, message, outcome);
    }

    /// A probe that was not reached frees its slot.
    pub async fn drop_probe(&self, queue: &QueueName, ticket: ProbeTicket) -> Result<(), BrokerError> {
        let live = self.live(queue).await?;
        let free = |breaker: &mut Breaker, _| {
            breaker.drop_probe(ticket);
            ((), None)
        };
        self.act_on_breaker(&live, free).await?;
        live.wake();
        Ok(())
    }

    /// Creates a queue of the bus.
    pub async fn create_own_queue(&self, request: CreateQueue) -> Result<Queue, BrokerError> {
        self.create_queue_unasked(request).await
    }

    /// Changes the configuration of a queue of the bus.
    pub async fn update_own_queue(&self, request: UpdateQueue) -> Result<Queue, BrokerError> {
        self.update_queue_unasked(request).await
    }

    /// Deletes a queue of the bus, with whatever is in it.
    pub async fn delete_own_queue(&self, name: QueueName) -> Result<(), BrokerError> {
        self.delete_queue_unasked(DeleteQueue { name, force: true }).await
    }

    /// Ids for events, in order.
    pub fn event_ids(&self, count: usize) -> Result<Vec<MessageId>, BrokerError> {
        Ok(self.chance.ids(self.now(), count)?)
    }

    /// A seed for the dice of one verdict.
    pub fn seed(&self) -> u64 {
        self.chance.seed()
    }

    /// Whether other instances may work on the same store.
    pub fn has_peers(&self) -> bool {
        self.peers.is_some()
    }

    /// Something was done to a subscription: an event, and a word to the other instances.
    pub fn tell_subscription(&self, id: &SubscriptionId, act: Act, trigger: Trigger) {
        self.events.tell(Happening::Subscription(act), &id.queue(), 0, trigger, self.now());
        self.tell_entry(EntryKind::Subscription, id.as_str());
    }

    /// Topics were changed: a word to the other instances.
    pub fn tell_topics(&self) {
        self.tell_entry(EntryKind::Topic, "topics");
    }

    /// Returns when another instance has changed topics or subscriptions.
    pub async fn subscriptions_changed(&self) {
        match &self.peers {
            Some(peers) => peers.subscriptions_changed().await,
            None => std::future::pending().await,
        }
    }
}
