//! Looking again at what is cached here, because another instance said that it changed, or because nobody may have said so.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redrive_core::queue::QueueName;
use redrive_core::time::Millis;
use redrive_store::Limit;
use tokio::sync::Notify;

use super::Peers;
use super::outbox::TRY_AGAIN;
use crate::broker::Broker;
use crate::clock::pause;
use crate::error::BrokerError;
use crate::operations::OperationId;

/// How long something may be cached that another instance changed and could not tell, because it ended.
const REFRESH: Millis = Millis::from_secs(15);

#[derive(Debug, Default)]
struct Changed {
    queues: BTreeSet<QueueName>,
    breakers: BTreeSet<QueueName>,
    operations: BTreeSet<OperationId>,
    everything: bool,
}

/// What has to be looked at again.
#[derive(Debug, Default)]
pub(super) struct Stale {
    changed: Mutex<Changed>,
    some: Notify,
}

impl Stale {
    fn lock(&self) -> MutexGuard<'_, Changed> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, note: impl FnOnce(&mut Changed)) {
        note(&mut self.lock());
        self.some.notify_one();
    }

    pub(super) fn queue(&self, queue: QueueName) {
        self.note(|changed| changed.queues.extend([queue]));
    }

    pub(super) fn breaker(&self, queue: QueueName) {
        self.note(|changed| changed.breakers.extend([queue]));
    }

    pub(super) fn operation(&self, id: OperationId) {
        self.note(|changed| changed.operations.extend([id]));
    }

    pub(super) fn everything(&self) {
        self.note(|changed| changed.everything = true);
    }

    fn take(&self) -> Changed {
        std::mem::take(&mut *self.lock())
    }
}

impl Broker {
    /// Looks again at what changed elsewhere, for as long as the broker runs.
    pub(super) async fn keep_fresh(&self) {
        let Some(peers) = &self.peers else { return };
        let mut next = self.now().plus(REFRESH);
        loop {
            tokio::select! {
                () = peers.stale.some.notified() => {}
                // However much is told, what is not told is looked for.
                () = self.clock.until(next) => {
                    next = self.now().plus(REFRESH);
                    peers.stale.everything();
                }
            }
            if let Err(error) = self.refresh(peers).await {
                tracing::warn!(%error, "what other instances changed is not known yet");
                peers.stale.everything();
                pause(TRY_AGAIN).await;
            }
        }
    }

    async fn refresh(&self, peers: &Peers) -> Result<(), BrokerError> {
        let changed = peers.stale.take();
        if changed.everything {
            return self.refresh_everything().await;
        }
        for queue in &changed.queues {
            self.refresh_queue(queue).await?;
        }
        for queue in &changed.breakers {
            if let Some(live) = self.queues.known(queue) {
                self.refresh_breaker(&live).await?;
            }
        }
        for id in changed.operations {
            self.refresh_operation(id).await?;
        }
        Ok(())
    }

    async fn refresh_queue(&self, name: &QueueName) -> Result<(), BrokerError> {
        let Some(live) = self.queues.known(name) else { return Ok(()) };
        match self.store.get_queue(name).await? {
            Some(queue) if live.is_of(&queue) => self.note_queue_here(&queue),
            // It is gone, whether or not there is another of its name.
            _ => self.forget_queue(&live),
        }
        Ok(())
    }

    /// Everything that is cached here, in as few calls as it takes.
    async fn refresh_everything(&self) -> Result<(), BrokerError> {
        let mut missing: BTreeSet<QueueName> =
            self.queues.all().into_iter().map(|live| live.name.clone()).collect();
        let mut after = None;
        while !missing.is_empty() {
            let page = self.store.list_queues(after.as_ref(), Limit::MAX).await?;
            after = page.last().map(|queue| queue.name.clone());
            for queue in &page {
                if missing.remove(&queue.name)
                    && let Some(live) = self.queues.known(&queue.name)
                    && live.is_of(queue)
                {
                    if live.is_older_than(queue) {
                        self.note_queue_here(queue);
                    }
                    self.refresh_breaker(&live).await?;
                }
            }
            if after.is_none() {
                break;
            }
        }
        for name in &missing {
            self.refresh_queue(name).await?;
        }
        self.refresh_operations();
        Ok(())
    }
}
