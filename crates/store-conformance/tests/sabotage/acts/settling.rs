//! What goes wrong when a lease ends.

use async_trait::async_trait;
use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::{Draft, When};
use redrive_core::message::State;
use redrive_core::policy::{Asked, Verdict};
use redrive_core::queue::QueueName;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    AckItem, Acked, Batch, EnqueueItem, ExpireRequest, ExtendItem, Filter, Judged, LeaseRequest, LeaseTarget,
    Leased, ListRequest, NackItem, Now, QueueError, ReleaseItem, Released, Settled, Store, StoreError,
};

use super::{current, rebuilt};
use crate::wrap::Sabotage;

#[derive(Debug, Default)]
pub(super) struct AckIgnoresLeaseId;

#[async_trait]
impl Sabotage for AckIgnoresLeaseId {
    async fn ack(
        &self,
        store: &dyn Store,
        now: Now,
        batch: Batch<AckItem>,
    ) -> Result<Vec<Settled<Acked>>, StoreError> {
        let mut items = Vec::new();
        for item in batch.items() {
            items.push(AckItem { claim: current(store, &item.claim).await });
        }
        store.ack(now, rebuilt(batch.is_all_or_nothing(), items)).await
    }
}

#[derive(Debug, Default)]
pub(super) struct AckForgetsWho;

#[async_trait]
impl Sabotage for AckForgetsWho {
    async fn ack(
        &self,
        store: &dyn Store,
        now: Now,
        batch: Batch<AckItem>,
    ) -> Result<Vec<Settled<Acked>>, StoreError> {
        let mut outcomes = store.ack(now, batch).await?;
        for outcome in &mut outcomes {
            if let Settled::Applied(acked) = outcome {
                acked.consumer = ConsumerName::default();
            }
        }
        Ok(outcomes)
    }
}

#[derive(Debug, Default)]
pub(super) struct NackIgnoresLeaseId;

#[async_trait]
impl Sabotage for NackIgnoresLeaseId {
    async fn nack(
        &self,
        store: &dyn Store,
        now: Now,
        batch: Batch<NackItem>,
        seed: u64,
    ) -> Result<Vec<Settled<Judged>>, StoreError> {
        let mut items = Vec::new();
        for item in batch.items() {
            items.push(NackItem { claim: current(store, &item.claim).await, ..item.clone() });
        }
        store.nack(now, rebuilt(batch.is_all_or_nothing(), items), seed).await
    }
}

#[derive(Debug, Default)]
pub(super) struct ExtendIgnoresLeaseId;

#[async_trait]
impl Sabotage for ExtendIgnoresLeaseId {
    async fn extend(
        &self,
        store: &dyn Store,
        now: Now,
        batch: Batch<ExtendItem>,
    ) -> Result<Vec<Settled<Timestamp>>, StoreError> {
        let all_or_nothing = batch.is_all_or_nothing();
        let any = |item: ExtendItem| {
            let target =
                LeaseTarget::Current { queue: item.target.queue().clone(), message: item.target.message() };
            ExtendItem { target, ..item }
        };
        store.extend(now, rebuilt(all_or_nothing, batch.into_items().into_iter().map(any).collect())).await
    }
}

/// An operator who names a lease gets whichever is there.
#[derive(Debug, Default)]
pub(super) struct ReleaseIgnoresLeaseId;

#[async_trait]
impl Sabotage for ReleaseIgnoresLeaseId {
    async fn release(
        &self,
        store: &dyn Store,
        now: Now,
        batch: Batch<ReleaseItem>,
    ) -> Result<Vec<Settled<Released>>, StoreError> {
        let all_or_nothing = batch.is_all_or_nothing();
        let any = |item: ReleaseItem| {
            let target =
                LeaseTarget::Current { queue: item.target.queue().clone(), message: item.target.message() };
            ReleaseItem { target, ..item }
        };
        store.release(now, rebuilt(all_or_nothing, batch.into_items().into_iter().map(any).collect())).await
    }
}

/// The extension is accepted, and the deadline stays where it was.
#[derive(Debug, Default)]
pub(super) struct ExtendIsForgotten;

#[async_trait]
impl Sabotage for ExtendIsForgotten {
    async fn extend(
        &self,
        store: &dyn Store,
        now: Now,
        batch: Batch<ExtendItem>,
    ) -> Result<Vec<Settled<Timestamp>>, StoreError> {
        let all_or_nothing = batch.is_all_or_nothing();
        let shortened = |item: ExtendItem| ExtendItem { time: Millis::ZERO, ..item };
        store
            .extend(now, rebuilt(all_or_nothing, batch.into_items().into_iter().map(shortened).collect()))
            .await
    }
}

/// A consumer that dies is not charged: its overdue lease is released instead of expired.
#[derive(Debug, Default)]
pub(super) struct AttemptCountedAtNackOnly;

async fn release_overdue(store: &dyn Store, now: Now, queue: &QueueName) {
    let Now::At(at) = now else { return };
    let Ok(page) = store.list(now, ListRequest::new(queue.clone(), Filter::state(State::Leased))).await
    else {
        return;
    };
    for message in page.messages {
        if message.lease().is_some_and(|lease| lease.is_overdue(at)) {
            let target = LeaseTarget::Current { queue: queue.clone(), message: message.id() };
            let batch = Batch::one(ReleaseItem { target, delay: None }).expect("one item");
            store.release(now, batch).await.expect("the reference answers");
        }
    }
}

#[async_trait]
impl Sabotage for AttemptCountedAtNackOnly {
    async fn expire(
        &self,
        store: &dyn Store,
        now: Now,
        request: ExpireRequest,
    ) -> Result<Vec<Judged>, QueueError> {
        if let Some(queue) = &request.queue {
            release_overdue(store, now, queue).await;
        }
        store.expire(now, request).await
    }

    async fn lease(&self, store: &dyn Store, now: Now, request: LeaseRequest) -> Result<Leased, QueueError> {
        release_overdue(store, now, &request.queue).await;
        store.lease(now, request).await
    }
}

#[derive(Debug, Default)]
pub(super) struct RetryAfterIgnored;

#[async_trait]
impl Sabotage for RetryAfterIgnored {
    async fn nack(
        &self,
        store: &dyn Store,
        now: Now,
        batch: Batch<NackItem>,
        seed: u64,
    ) -> Result<Vec<Settled<Judged>>, StoreError> {
        let all_or_nothing = batch.is_all_or_nothing();
        let deaf = |item: NackItem| NackItem { asked: Asked::Nothing, ..item };
        store
            .nack(now, rebuilt(all_or_nothing, batch.into_items().into_iter().map(deaf).collect()), seed)
            .await
    }
}

/// A release is a nack by another name.
#[derive(Debug, Default)]
pub(super) struct ReleaseIsCharged;

#[async_trait]
impl Sabotage for ReleaseIsCharged {
    async fn release(
        &self,
        store: &dyn Store,
        now: Now,
        batch: Batch<ReleaseItem>,
    ) -> Result<Vec<Settled<Released>>, StoreError> {
        let mut outcomes = Vec::new();
        for item in batch.into_items() {
            let LeaseTarget::Claim(claim) = item.target.clone() else {
                outcomes.extend(store.release(now, Batch::one(item).expect("one item")).await?);
                continue;
            };
            let asked = Asked::Exactly(item.delay.unwrap_or_default());
            let error = redrive_core::message::ErrorText::new("released");
            let nack = NackItem { claim, asked, error, checkpoint: None };
            for settled in store.nack(now, Batch::one(nack).expect("one item"), 0).await? {
                outcomes.push(match settled {
                    Settled::Applied(Judged {
                        verdict: Verdict::RetryAt(visible_at, _),
                        consumer: Some(consumer),
                        ..
                    }) => Settled::Applied(Released { visible_at, consumer, lapsed: None }),
                    Settled::LeaseLost => Settled::LeaseLost,
                    Settled::Applied(_) | Settled::NotFound => Settled::NotFound,
                    Settled::Aborted => Settled::Aborted,
                });
            }
        }
        Ok(outcomes)
    }
}

#[derive(Debug, Default)]
pub(super) struct AllOrNothingByHalves;

#[async_trait]
impl Sabotage for AllOrNothingByHalves {
    async fn ack(
        &self,
        store: &dyn Store,
        now: Now,
        batch: Batch<AckItem>,
    ) -> Result<Vec<Settled<Acked>>, StoreError> {
        store.ack(now, rebuilt(false, batch.into_items())).await
    }
}

/// The dead letter arrives, and a copy of it stays behind.
#[derive(Debug, Default)]
pub(super) struct DeadLetterCopied;

#[async_trait]
impl Sabotage for DeadLetterCopied {
    async fn nack(
        &self,
        store: &dyn Store,
        now: Now,
        batch: Batch<NackItem>,
        seed: u64,
    ) -> Result<Vec<Settled<Judged>>, StoreError> {
        let outcomes = store.nack(now, batch, seed).await?;
        for outcome in &outcomes {
            if let Settled::Applied(Judged { queue, message, moved_to: Some(target), .. }) = outcome
                && let Some(moved) = store.get(target, *message).await?
            {
                let draft = Draft {
                    spec: moved.spec,
                    priority: moved.progress.priority,
                    visible: When::Now,
                    expires: None,
                };
                let copy = EnqueueItem { queue: queue.clone(), draft };
                store.enqueue(now, Batch::one(copy).expect("one item")).await?;
            }
        }
        Ok(outcomes)
    }
}
