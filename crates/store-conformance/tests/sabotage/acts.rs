//! The sabotages: each does one thing wrong, the way real queues have.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use redrive_core::lifecycle::{Draft, When};
use redrive_core::message::{Message, MessageId, State, Uniqueness};
use redrive_core::policy::{Asked, Share};
use redrive_core::queue::{Queue, QueueConfig, QueueName, Weights};
use redrive_core::receipt::Claim;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    AckItem, Acked, Batch, Bulk, CreateQueue, EnqueueItem, EnqueueOutcome, Expect, ExpireRequest, ExtendItem,
    Filter, Judged, LeaseRequest, LeaseTarget, Leased, ListRequest, NackItem, Now, Page, PauseQueue, Pick,
    QueueError, QueueStats, ReleaseItem, Selection, Settled, Store, StoreError, UpdateQueue, Write,
    WriteOutcome, Writes,
};

use crate::wrap::{Sabotage, Saboteur};

/// Whether random histories can see a sabotage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByHistories {
    /// They can.
    Found,
    /// Whose turn it is, is what an instance keeps for itself; the histories accept any lawful choice.
    NotSeen,
}

/// A sabotage and the rule that is there for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Act {
    pub(crate) name: &'static str,
    make: fn() -> Arc<dyn Sabotage>,
    pub(crate) rule: &'static str,
    pub(crate) histories: ByHistories,
}

impl Act {
    pub(crate) fn subject(&self) -> Saboteur {
        Saboteur { name: self.name, make: self.make }
    }
}

macro_rules! acts {
    ($($act:ident: $rule:literal, $histories:ident;)*) => {
        pub(crate) fn all() -> Vec<Act> {
            vec![$(Act {
                name: stringify!($act),
                make: || Arc::new($act::default()),
                rule: $rule,
                histories: ByHistories::$histories,
            }),*]
        }
    };
}

acts! {
    AckIgnoresLeaseId: "fencing::a_stale_receipt_changes_nothing", Found;
    NackIgnoresLeaseId: "fencing::a_stale_receipt_changes_nothing", Found;
    ExtendIgnoresLeaseId: "fencing::a_stale_receipt_changes_nothing", Found;
    ExtendIsForgotten: "time::an_extend_that_races_the_sweeper_wins", Found;
    AttemptCountedAtNackOnly: "expire::a_dead_consumer_has_had_its_attempt", Found;
    CapOffByOne: "nack::the_cap_is_exact", Found;
    RetryOneMillisecondEarly: "time::a_retry_is_not_one_millisecond_early", Found;
    RetryAtTruncatedToSeconds: "nack::a_failed_message_waits_for_its_backoff", Found;
    RetryAfterIgnored: "nack::what_the_consumer_asks_for_is_honoured", Found;
    RetriesAheadOfFresh: "lanes::the_retry_share_holds_for_any_mix_of_batch_sizes", NotSeen;
    WeightsIgnored: "fairness::keys_share_by_weight_in_calls_of_any_size", NotSeen;
    LastInFirstOut: "ordering::the_first_in_is_the_first_out", Found;
    FilterIgnored: "filter::a_consumer_gets_only_the_types_and_sources_it_asks_for", Found;
    DeadLetterCopied: "nack::a_dead_letter_is_moved_not_copied", Found;
    IndexEntryLeftBehind: "ack::an_acked_message_is_gone", Found;
    CounterOutsideTheWrite: "conservation::everything_drains", Found;
    ReleaseIsCharged: "release::a_released_message_is_unharmed", Found;
    DedupKeyLostWithTheAck: "dedup::a_window_holds_even_after_the_ack_and_over_a_restart", Found;
    TimeToLiveForgotten: "lapse::a_message_that_is_too_old_is_never_handed_out", Found;
    PauseIgnored: "lease::a_paused_queue_hands_out_nothing_and_everything_else_goes_on", Found;
    LookingTakesALease: "list::a_look_takes_no_lease", Found;
    AllOrNothingByHalves: "batch::settlements_apply_together_or_not_at_all", Found;
    DryRunIsReal: "redrive::a_dry_run_counts_and_changes_nothing", Found;
    DiscardAlwaysByForce: "discard::a_leased_message_is_discarded_only_by_force", Found;
    RestartEndsLeases: "recovery::a_lease_is_not_handed_out_again_by_a_restart", Found;
    TwoProbes: "breaker::one_probe_means_one_over_all_instances", Found;
    ProbeBurnsAttempts: "breaker::an_open_breaker_burns_no_attempt", Found;
}

/// The claim of whatever lease a message has now.
async fn current(store: &dyn Store, claim: &Claim) -> Claim {
    let message = store.get(&claim.queue, claim.message).await.ok().flatten();
    message.as_ref().and_then(Claim::on).unwrap_or_else(|| claim.clone())
}

/// The same batch with other items.
fn rebuilt<T: redrive_store::Load>(all_or_nothing: bool, items: Vec<T>) -> Batch<T> {
    let batch = if all_or_nothing { Batch::all_or_nothing(items) } else { Batch::each(items) };
    batch.expect("it was a good batch before")
}

fn shifted(now: Now, shift: impl Fn(u64) -> u64) -> Now {
    match now {
        Now::At(at) => Now::At(Timestamp::from_millis(shift(at.as_millis()))),
        Now::Store => Now::Store,
    }
}

/// Changes the configuration of every queue on its way in.
macro_rules! configured {
    ($act:ident, $change:expr) => {
        #[derive(Debug, Default)]
        struct $act;

        #[async_trait]
        impl Sabotage for $act {
            async fn create_queue(
                &self,
                store: &dyn Store,
                now: Now,
                mut request: CreateQueue,
            ) -> Result<Queue, QueueError> {
                let change: fn(&mut QueueConfig) = $change;
                change(&mut request.config);
                store.create_queue(now, request).await
            }

            async fn update_queue(
                &self,
                store: &dyn Store,
                now: Now,
                mut request: UpdateQueue,
            ) -> Result<Queue, QueueError> {
                let change: fn(&mut QueueConfig) = $change;
                change(&mut request.config);
                store.update_queue(now, request).await
            }
        }
    };
}

configured!(CapOffByOne, |config| {
    if let Some(max) = config.retry.max_attempts.flatten() {
        config.retry.max_attempts = Some(max.checked_add(1));
    }
});

configured!(RetryOneMillisecondEarly, |config| {
    if let Some(delay) = config.retry.base_delay {
        config.retry.base_delay = Some(Millis::new(delay.get().saturating_sub(1)));
    }
});

configured!(RetriesAheadOfFresh, |config| config.retry_share = Some(Share::new(1.0).expect("all of it")));

configured!(WeightsIgnored, |config| config.weights = Some(Weights::default()));

#[derive(Debug, Default)]
struct AckIgnoresLeaseId;

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
struct NackIgnoresLeaseId;

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
struct ExtendIgnoresLeaseId;

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

/// The answer is right, and the deadline is not written.
#[derive(Debug, Default)]
struct ExtendIsForgotten;

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
struct AttemptCountedAtNackOnly;

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
struct RetryAtTruncatedToSeconds;

#[async_trait]
impl Sabotage for RetryAtTruncatedToSeconds {
    async fn lease(&self, store: &dyn Store, now: Now, request: LeaseRequest) -> Result<Leased, QueueError> {
        store.lease(shifted(now, |ms| ms.next_multiple_of(1_000)), request).await
    }
}

#[derive(Debug, Default)]
struct RetryAfterIgnored;

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

#[derive(Debug, Default)]
struct LastInFirstOut;

#[async_trait]
impl Sabotage for LastInFirstOut {
    async fn enqueue(
        &self,
        store: &dyn Store,
        now: Now,
        batch: Batch<EnqueueItem>,
    ) -> Result<Vec<EnqueueOutcome>, StoreError> {
        let all_or_nothing = batch.is_all_or_nothing();
        let backwards = batch.into_items().into_iter().rev().collect();
        let mut outcomes = store.enqueue(now, rebuilt(all_or_nothing, backwards)).await?;
        outcomes.reverse();
        Ok(outcomes)
    }
}

#[derive(Debug, Default)]
struct FilterIgnored;

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

/// The dead letter arrives, and a copy of it stays behind.
#[derive(Debug, Default)]
struct DeadLetterCopied;

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

/// An acked message is gone, but not from the list.
#[derive(Debug, Default)]
struct IndexEntryLeftBehind {
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

/// Every third lease is not counted.
#[derive(Debug, Default)]
struct CounterOutsideTheWrite;

#[async_trait]
impl Sabotage for CounterOutsideTheWrite {
    async fn stats(&self, store: &dyn Store, now: Now, queue: &QueueName) -> Result<QueueStats, QueueError> {
        let mut stats = store.stats(now, queue).await?;
        stats.totals.moved_in += stats.totals.of(redrive_core::lifecycle::Verb::Lease) / 3;
        Ok(stats)
    }
}

/// A release is a nack by another name.
#[derive(Debug, Default)]
struct ReleaseIsCharged;

#[async_trait]
impl Sabotage for ReleaseIsCharged {
    async fn release(
        &self,
        store: &dyn Store,
        now: Now,
        batch: Batch<ReleaseItem>,
    ) -> Result<Vec<Settled<Timestamp>>, StoreError> {
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
                    Settled::Applied(_) => Settled::Applied(match now {
                        Now::At(at) => at,
                        Now::Store => Timestamp::EPOCH,
                    }),
                    Settled::LeaseLost => Settled::LeaseLost,
                    Settled::NotFound => Settled::NotFound,
                    Settled::Aborted => Settled::Aborted,
                });
            }
        }
        Ok(outcomes)
    }
}

/// Changes every message on its way in.
macro_rules! enqueued {
    ($act:ident, $change:expr) => {
        #[derive(Debug, Default)]
        struct $act;

        #[async_trait]
        impl Sabotage for $act {
            async fn enqueue(
                &self,
                store: &dyn Store,
                now: Now,
                batch: Batch<EnqueueItem>,
            ) -> Result<Vec<EnqueueOutcome>, StoreError> {
                let change: fn(&mut Draft) = $change;
                let all_or_nothing = batch.is_all_or_nothing();
                let mut items = batch.into_items();
                for item in &mut items {
                    change(&mut item.draft);
                }
                store.enqueue(now, rebuilt(all_or_nothing, items)).await
            }
        }
    };
}

enqueued!(DedupKeyLostWithTheAck, |draft| {
    if let Some(dedup) = &mut draft.spec.dedup {
        dedup.unique = Uniqueness::UntilDone;
    }
});

enqueued!(TimeToLiveForgotten, |draft| draft.expires = None);

#[derive(Debug, Default)]
struct PauseIgnored;

#[async_trait]
impl Sabotage for PauseIgnored {
    async fn pause_queue(
        &self,
        store: &dyn Store,
        now: Now,
        request: PauseQueue,
    ) -> Result<Queue, QueueError> {
        store.pause_queue(now, PauseQueue { pause: None, ..request }).await
    }
}

#[derive(Debug, Default)]
struct LookingTakesALease;

#[async_trait]
impl Sabotage for LookingTakesALease {
    async fn list(&self, store: &dyn Store, now: Now, request: ListRequest) -> Result<Page, QueueError> {
        let peek =
            LeaseRequest::new(request.queue.clone(), 1, redrive_core::lease::ConsumerName::default(), 0);
        store.lease(now, peek).await?;
        store.list(now, request).await
    }
}

#[derive(Debug, Default)]
struct AllOrNothingByHalves;

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

#[derive(Debug, Default)]
struct DryRunIsReal;

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
struct DiscardAlwaysByForce;

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
struct RestartEndsLeases;

#[async_trait]
impl Sabotage for RestartEndsLeases {
    async fn restarted(&self, store: &dyn Store, now: Timestamp) {
        let now = Now::At(now);
        for queue in store.list_queues(None, 1_000).await.expect("the reference answers") {
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
struct TwoProbes;

#[async_trait]
impl Sabotage for TwoProbes {
    async fn registry_write(&self, store: &dyn Store, writes: Writes) -> Result<WriteOutcome, StoreError> {
        let blind = |write: Write| Write { expect: Expect::Anything, ..write };
        let writes = writes.into_items().into_iter().map(blind).collect();
        store.registry_write(Writes::new(writes).expect("they were good before")).await
    }
}

/// The probe is whatever comes next, as many as were asked for.
#[derive(Debug, Default)]
struct ProbeBurnsAttempts;

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
