//! Acts that are about more than one thing, or about something that must be looked up: each of them is asked for.

use futures::future::{Either, ready};
use redrive_core::access::{Deed, On, Use};
use redrive_core::queue::{Queue, QueueConfig, QueueName};
use redrive_core::time::Millis;
use redrive_store::{CreateQueue, EnqueueOutcome, Limit, QueueError, UpdateQueue};

use super::audit::About;
use super::{Caller, Quotas};
use crate::breaker::BreakerView;
use crate::broker::Broker;
use crate::enqueue::NewMessage;
use crate::error::BrokerError;
use crate::lease::{Delivery, LeaseCall};
use crate::operations::{NewOperation, Operation, OperationId, Work};

impl Caller {
    /// Enqueues, where the caller may. A queue comes into being by its first message only where the caller might have
    /// created it, and has no quota that would have to be counted.
    pub async fn enqueue(
        &self,
        messages: Vec<NewMessage>,
        all_or_nothing: bool,
    ) -> Result<Vec<Result<EnqueueOutcome, BrokerError>>, BrokerError> {
        let mut broker = self.may(Use::Enqueue, On::Some)?;
        let mut create = true;
        for part in messages.chunk_by(|one, next| one.queue == next.queue) {
            let Some(NewMessage { queue, .. }) = part.first() else { continue };
            broker = self.may(Use::Enqueue, queue)?;
            create &= self.sees(Deed::CreateQueue, queue) && self.quotas().queues.is_none();
        }
        let (outcomes, created) = broker.enqueue_as(messages, all_or_nothing, create).await?;
        for queue in created {
            let about = About::Queue(queue.as_str().to_owned());
            self.note_done(Deed::CreateQueue, Some(about), &Ok::<_, BrokerError>(())).await;
        }
        Ok(outcomes)
    }

    /// Leases, and waits for no longer than the caller is let in. The future of a poll without a key is the broker's own:
    /// thousands of them wait, and each has room for nothing else.
    pub fn lease(
        &self,
        call: LeaseCall,
    ) -> impl Future<Output = Result<Vec<Delivery>, BrokerError>> + Send + '_ {
        let broker = match self.may(Use::Lease, &call.queue) {
            Ok(broker) => broker,
            Err(refused) => return Either::Left(ready(Err(refused))),
        };
        if self.session.is_none() || call.wait == Millis::ZERO {
            return Either::Right(Either::Left(broker.lease(call)));
        }
        Either::Right(Either::Right(Box::pin(async move {
            let _consuming = self.consume()?;
            self.while_let_in(broker.lease(call)).await
        })))
    }

    /// Creates a queue.
    pub async fn create_queue(&self, request: CreateQueue) -> Result<Queue, BrokerError> {
        let name = request.name.clone();
        self.act(Deed::CreateQueue, &name, async |broker: Broker| {
            self.may_send_dead(&request.config)?;
            if self.quotas().queues.is_none() {
                return broker.create_queue(request).await;
            }
            let _counting = self.gate.0.counting.lock().await;
            self.count_queues(&broker).await?;
            broker.create_queue(request).await
        })
        .await
    }

    /// Changes the configuration of a queue.
    pub async fn update_queue(&self, request: UpdateQueue) -> Result<Queue, BrokerError> {
        let name = request.name.clone();
        self.act(Deed::UpdateQueue, &name, async |broker: Broker| {
            self.may_send_dead(&request.config)?;
            broker.update_queue(request).await
        })
        .await
    }

    /// A queue whose dead messages go elsewhere puts messages there.
    fn may_send_dead(&self, config: &QueueConfig) -> Result<(), BrokerError> {
        match config.dead_letter_to.as_ref().and_then(Option::as_ref) {
            Some(target) => self.may(Use::Enqueue, target).map(drop),
            None => Ok(()),
        }
    }

    fn quotas(&self) -> Quotas {
        self.session.as_ref().map(|session| session.key.quotas).unwrap_or_default()
    }

    /// Whether there may be one more queue among those that the caller manages.
    async fn count_queues(&self, broker: &Broker) -> Result<(), BrokerError> {
        let Some(max) = self.quotas().queues else { return Ok(()) };
        let (mut count, mut after) = (0_u32, None);
        loop {
            let queues = broker.list_queues(after.as_ref(), Limit::MAX).await?;
            let own = queues.iter().filter(|queue| self.sees(Deed::CreateQueue, &queue.name)).count();
            count = count.saturating_add(u32::try_from(own).unwrap_or(u32::MAX));
            if count >= max {
                return Err(BrokerError::QuotaReached { what: "queues", max });
            }
            after = queues.into_iter().next_back().map(|queue| queue.name);
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// A page of the queues that the caller may see, and where the next page begins.
    pub async fn list_queues(
        &self,
        mut after: Option<QueueName>,
        limit: Limit,
    ) -> Result<(Vec<Queue>, Option<QueueName>), BrokerError> {
        let broker = self.may(Use::Look, On::Some)?;
        let mut seen = Vec::new();
        loop {
            // What is left out must not make for many small steps.
            let page = broker.list_queues(after.as_ref(), Limit::MAX).await?;
            let last = page.len() < Limit::MAX.get();
            for queue in page {
                after = Some(queue.name.clone());
                if self.sees(Use::Look, &queue.name) {
                    seen.push(queue);
                }
                if seen.len() == limit.get() {
                    return Ok((seen, after));
                }
            }
            if last {
                return Ok((seen, None));
            }
        }
    }

    /// The breakers among a page of the queues that the caller may see, and where the next page begins.
    pub async fn breakers(
        &self,
        after: Option<QueueName>,
        limit: Limit,
    ) -> Result<(Vec<(QueueName, BreakerView)>, Option<QueueName>), BrokerError> {
        let broker = self.may(Use::Look, On::Some)?;
        let page = broker.list_queues(after.as_ref(), Limit::MAX).await?;
        let mut next = page.last().map(|queue| queue.name.clone()).filter(|_| page.len() == Limit::MAX.get());
        let mut found = Vec::new();
        for queue in page {
            let has_one = queue.config.over(&broker.config().defaults).breaker.is_some();
            if !has_one || !self.sees(Use::Look, &queue.name) {
                continue;
            }
            match broker.breaker(&queue.name).await {
                Ok(Some(view)) => found.push((queue.name.clone(), view)),
                // It went since the page was read.
                Ok(None) | Err(BrokerError::Queue(QueueError::NotFound(_))) => {}
                Err(error) => return Err(error),
            }
            if found.len() == limit.get() {
                next = Some(queue.name);
                break;
            }
        }
        Ok((found, next))
    }

    /// A page of the operations that the caller may see, and where the next page begins.
    pub async fn operations(
        &self,
        mut after: Option<OperationId>,
        limit: Limit,
    ) -> Result<(Vec<Operation>, Option<OperationId>), BrokerError> {
        let broker = self.may(Use::Look, On::Some)?;
        let mut seen = Vec::new();
        loop {
            let page = broker.operations(after, Limit::MAX).await?;
            let last = page.len() < Limit::MAX.get();
            for operation in page {
                after = Some(operation.id);
                if self.sees(Use::Look, &operation.queue) {
                    seen.push(operation);
                }
                if seen.len() == limit.get() {
                    return Ok((seen, after));
                }
            }
            if last {
                return Ok((seen, None));
            }
        }
    }

    /// An operation on a queue that the caller may see.
    pub async fn operation(&self, id: OperationId) -> Result<Operation, BrokerError> {
        let operation = self.may(Use::Look, On::Some)?.operation(id).await?;
        // Who may not see it need not know that it is there, nor where.
        if self.sees(Use::Look, &operation.queue) {
            Ok(operation)
        } else {
            Err(BrokerError::OperationNotFound(id))
        }
    }

    /// Does something to an operation.
    pub async fn change_operation(&self, id: OperationId, deed: Deed) -> Result<Operation, BrokerError> {
        let queue = self.operation(id).await?.queue;
        self.act(deed, &queue, async |broker: Broker| match deed {
            Deed::PauseOperation => broker.pause_operation(id).await,
            Deed::ResumeOperation => broker.resume_operation(id).await,
            _ => broker.cancel_operation(id).await,
        })
        .await
    }

    /// How many messages an operation would touch. Who may not do it need not know.
    pub async fn dry_run(&self, deed: Deed, new: &NewOperation) -> Result<u64, BrokerError> {
        self.may_target(&new.work)?;
        self.may(deed, &new.queue)?.dry_run(new).await
    }

    /// Starts an operation.
    pub async fn start_operation(&self, deed: Deed, new: NewOperation) -> Result<Operation, BrokerError> {
        let queue = new.queue.clone();
        self.act(deed, &queue, async |broker: Broker| {
            self.may_target(&new.work)?;
            broker.start_operation(new).await
        })
        .await
    }

    /// What moves a message puts it somewhere.
    fn may_target(&self, work: &Work) -> Result<(), BrokerError> {
        match work {
            Work::Move { target } => self.may(Use::Enqueue, target).map(drop),
            Work::Redrive { .. } | Work::Discard { .. } => Ok(()),
        }
    }
}
