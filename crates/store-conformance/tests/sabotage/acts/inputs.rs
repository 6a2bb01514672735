//! What goes wrong on the way in: settings, messages, pauses.

use async_trait::async_trait;
use redrive_core::lifecycle::Draft;
use redrive_core::message::Uniqueness;
use redrive_core::policy::Share;
use redrive_core::queue::{Queue, QueueConfig, Weights};
use redrive_core::time::Millis;
use redrive_store::{
    Batch, CreateQueue, EnqueueItem, EnqueueOutcome, Now, PauseQueue, QueueError, Store, StoreError,
    UpdateQueue,
};

use super::rebuilt;
use crate::wrap::Sabotage;

/// Changes the configuration of every queue on its way in.
macro_rules! configured {
    ($act:ident, $change:expr) => {
        #[derive(Debug, Default)]
        pub(super) struct $act;

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

/// Changes every message on its way in.
macro_rules! enqueued {
    ($act:ident, $change:expr) => {
        #[derive(Debug, Default)]
        pub(super) struct $act;

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
pub(super) struct LastInFirstOut;

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
pub(super) struct PauseIgnored;

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
