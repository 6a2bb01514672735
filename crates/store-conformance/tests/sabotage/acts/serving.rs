//! What goes wrong when messages are handed out, looked at, swept or kept.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use redrive_core::message::{Message, MessageId, State};
use redrive_core::queue::QueueName;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    AckItem, Acked, Batch, Bulk, Expect, Filter, LeaseRequest, LeaseTarget, Leased, Limit, ListRequest,
    LockClaim, LogName, LogRange, LogRecord, Now, Page, Pick, QueueError, QueueStats, ReleaseItem, Selection,
    Settled, Signal, Store, StoreError, Write, WriteOutcome, Writes,
};

use super::shifted;
use crate::wrap::Sabotage;

#[derive(Debug, Default)]
pub(super) struct RetryAtTruncatedToSeconds;

#[async_trait]
impl Sabotage for RetryAtTruncatedToSeconds {
    async fn lease(&self, store: &dyn Store, now: Now, request: LeaseRequest) -> Result<Leased, QueueError> {
        store.lease(shifted(now, |ms| ms.next_multiple_of(1_000)), request).await
    }
}

#[derive(Debug, Default)]
pub(super) struct FilterIgnored;

#[async_trait]
impl Sabotage for FilterIgnored {
    async fn lease(
        &self,
        store: &dyn Store,
        now: Now,
        mut request: LeaseRequest,
    ) -> Result<Leased, QueueError> {
        request.filter.kinds.clear();
        store.lease(now, request).await
    }
}

#[derive(Debug, Default)]
pub(super) struct LookingTakesALease;

#[async_trait]
impl Sabotage for LookingTakesALease {
    async fn list(&self, store: &dyn Store, now: Now, request: ListRequest) -> Result<Page, QueueError> {
        let peek = LeaseRequest::new(
            request.queue.clone(),
            Limit::ONE,
            redrive_core::lease::ConsumerName::default(),
            0,
        );
        store.lease(now, peek).await?;
        store.list(now, request).await
    }
}

/// The probe is whatever comes next, as many as were asked for.
#[derive(Debug, Default)]
pub(super) struct ProbeBurnsAttempts;

#[async_trait]
impl Sabotage for ProbeBurnsAttempts {
    async fn lease(
        &self,
        store: &dyn Store,
        now: Now,
        mut request: LeaseRequest,
    ) -> Result<Leased, QueueError> {
        request.pick = Pick::Fair;
        store.lease(now, request).await
    }
}

/// An acked message is gone, but not from the list.
#[derive(Debug, Default)]
pub(super) struct IndexEntryLeftBehind {
    ghosts: Mutex<BTreeMap<MessageId, Message>>,
}

#[async_trait]
impl Sabotage for IndexEntryLeftBehind {
    async fn ack(
        &self,
        store: &dyn Store,
        now: Now,
        batch: Batch<AckItem>,
    ) -> Result<Vec<Settled<Acked>>, StoreError> {
        for item in batch.items() {
            if let Some(message) = store.get(&item.claim.queue, item.claim.message).await? {
                self.ghosts.lock().expect("no panic while it is held").insert(message.id(), message);
            }
        }
        store.ack(now, batch).await
    }

    async fn list(&self, store: &dyn Store, now: Now, request: ListRequest) -> Result<Page, QueueError> {
        let Now::At(at) = now else { return store.list(now, request).await };
        let mut page = store.list(now, request.clone()).await?;
        let ghosts = self.ghosts.lock().expect("no panic while it is held");
        let seen = |ghost: &&Message| ghost.queue == request.queue && request.filter.matches(ghost, at);
        page.messages.extend(ghosts.values().filter(seen).cloned());
        Ok(page)
    }
}

/// Arrivals are counted that never were.
#[derive(Debug, Default)]
pub(super) struct CounterOutsideTheWrite;

#[async_trait]
impl Sabotage for CounterOutsideTheWrite {
    async fn stats(&self, store: &dyn Store, now: Now, queue: &QueueName) -> Result<QueueStats, QueueError> {
        let mut stats = store.stats(now, queue).await?;
        stats.totals.moved_in += stats.totals.of(redrive_core::lifecycle::Verb::Lease) / 3;
        Ok(stats)
    }
}

/// A step goes on to whatever is there by now.
#[derive(Debug, Default)]
pub(super) struct StepsHaveNoEnd;

#[async_trait]
impl Sabotage for StepsHaveNoEnd {
    async fn discard(
        &self,
        store: &dyn Store,
        now: Now,
        selection: Selection,
        force: bool,
    ) -> Result<Bulk, QueueError> {
        store.discard(now, Selection { until: None, ..selection }, force).await
    }
}

#[derive(Debug, Default)]
pub(super) struct DryRunIsReal;

#[async_trait]
impl Sabotage for DryRunIsReal {
    async fn redrive(
        &self,
        store: &dyn Store,
        now: Now,
        selection: Selection,
        by: redrive_core::message::Note,
        reason: redrive_core::message::Note,
    ) -> Result<Bulk, QueueError> {
        store.redrive(now, Selection { dry_run: false, ..selection }, by, reason).await
    }
}

#[derive(Debug, Default)]
pub(super) struct DiscardAlwaysByForce;

#[async_trait]
impl Sabotage for DiscardAlwaysByForce {
    async fn discard(
        &self,
        store: &dyn Store,
        now: Now,
        selection: Selection,
        _force: bool,
    ) -> Result<Bulk, QueueError> {
        store.discard(now, selection, true).await
    }
}

#[derive(Debug, Default)]
pub(super) struct RestartEndsLeases;

#[async_trait]
impl Sabotage for RestartEndsLeases {
    async fn restarted(&self, store: &dyn Store, now: Timestamp) {
        let now = Now::At(now);
        for queue in store.list_queues(None, Limit::MAX).await.expect("the reference answers") {
            let leased = ListRequest::new(queue.name.clone(), Filter::state(State::Leased));
            for message in store.list(now, leased).await.expect("the reference answers").messages {
                let target = LeaseTarget::Current { queue: queue.name.clone(), message: message.id() };
                let batch = Batch::one(ReleaseItem { target, delay: None }).expect("one item");
                store.release(now, batch).await.expect("the reference answers");
            }
        }
    }
}

/// Compare-and-set without the compare: two instances take the probe slot.
#[derive(Debug, Default)]
pub(super) struct TwoProbes;

#[async_trait]
impl Sabotage for TwoProbes {
    async fn registry_write(&self, store: &dyn Store, writes: Writes) -> Result<WriteOutcome, StoreError> {
        let blind = |write: Write| Write { expect: Expect::Anything, ..write };
        let writes = writes.into_items().into_iter().map(blind).collect();
        store.registry_write(Writes::new(writes).expect("they were good before")).await
    }
}

#[derive(Debug, Default)]
pub(super) struct MoreIsNeverSaid;

#[async_trait]
impl Sabotage for MoreIsNeverSaid {
    async fn lease(&self, store: &dyn Store, now: Now, request: LeaseRequest) -> Result<Leased, QueueError> {
        Ok(Leased { more: false, ..store.lease(now, request).await? })
    }
}

/// The last message of a page falls between it and the next.
#[derive(Debug, Default)]
pub(super) struct CursorSkipsOne;

#[async_trait]
impl Sabotage for CursorSkipsOne {
    async fn list(&self, store: &dyn Store, now: Now, request: ListRequest) -> Result<Page, QueueError> {
        let mut page = store.list(now, request).await?;
        if page.next.is_some() {
            page.messages.pop();
        }
        Ok(page)
    }
}

/// A log asked for its newest records begins with the oldest.
#[derive(Debug, Default)]
pub(super) struct LogsHaveOneDirection;

#[async_trait]
impl Sabotage for LogsHaveOneDirection {
    async fn log_read(
        &self,
        store: &dyn Store,
        log: &LogName,
        range: LogRange,
        limit: Limit,
    ) -> Result<Vec<LogRecord>, StoreError> {
        let mut records = store.log_read(log, range, limit).await?;
        records.sort_by_key(|record| record.sequence);
        Ok(records)
    }
}

/// What is told goes through something that knows no capital letters, as the channels of a database do.
#[derive(Debug, Default)]
pub(super) struct NamesAreFolded;

#[async_trait]
impl Sabotage for NamesAreFolded {
    async fn tell(&self, store: &dyn Store, signals: Vec<Signal>) -> Result<(), StoreError> {
        let folded = |signal: Signal| Signal::decode(&signal.encode().to_lowercase());
        store.tell(signals.into_iter().filter_map(folded).collect()).await
    }
}

/// A lock is let go of by whoever says so, as by a bare DEL.
#[derive(Debug, Default)]
pub(super) struct LocksAreAnybodys(Mutex<Option<LockClaim>>);

impl LocksAreAnybodys {
    fn held(&self) -> MutexGuard<'_, Option<LockClaim>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Sabotage for LocksAreAnybodys {
    async fn hold_lock(
        &self,
        store: &dyn Store,
        now: Timestamp,
        claim: &LockClaim,
        lifetime: Millis,
    ) -> Result<bool, StoreError> {
        let is_held = store.hold_lock(now, claim, lifetime).await?;
        if is_held {
            *self.held() = Some(claim.clone());
        }
        Ok(is_held)
    }

    async fn release_lock(&self, store: &dyn Store, claim: &LockClaim) -> Result<bool, StoreError> {
        let held = self.held().take().unwrap_or_else(|| claim.clone());
        store.release_lock(&held).await
    }
}
