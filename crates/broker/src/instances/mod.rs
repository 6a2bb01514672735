//! Several instances on one store: what they tell each other, and how they agree on who does what.
//!
//! The store decides; that is why any number of instances is right. What is here makes them quick and keeps them from doing
//! the same work: `outbox` tells the others what happened here, `hear` does what follows from what they tell, `refresh`
//! looks again at what was cached, `event` carries events to the watchers of other instances, `lock` lets one of them sweep,
//! and `row` is what their breakers agree on. Where a store has one owner there is no [`Peers`], and nothing of this runs.

mod event;
mod hear;
mod lock;
mod outbox;
mod refresh;
mod row;

use std::fmt;
use std::sync::Arc;

use redrive_core::queue::QueueName;
use redrive_core::time::Millis;
use redrive_store::{EntryKey, EntryKind, EntryName, LockToken};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::broker::Broker;
use crate::error::BrokerError;
pub(crate) use lock::LIFETIME;
use lock::Locks;
pub(crate) use outbox::Outbox;
use refresh::Stale;

/// How long the last signals may take when the broker ends.
const FAREWELL: Millis = Millis::from_secs(1);

/// Who an instance is to the others. Random, so that an instance that was started again is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InstanceToken(u128);

impl InstanceToken {
    fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(u128::from_be_bytes(bytes)))
    }

    pub(crate) fn for_locks(self) -> LockToken {
        LockToken::new(self.0)
    }

    /// Half of it, where there is room for no more.
    pub(crate) fn short(self) -> u64 {
        u64::try_from(self.0 >> u64::BITS).unwrap_or_default()
    }
}

impl fmt::Display for InstanceToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// What an instance keeps to work beside others.
#[derive(Debug)]
pub(crate) struct Peers {
    pub(crate) token: InstanceToken,
    outbox: Arc<Outbox>,
    stale: Stale,
    locks: Locks,
    /// Another instance let go of a lock.
    lock_freed: Notify,
    /// Another instance changed the API keys.
    keys_changed: Notify,
    /// Another instance changed topics or subscriptions.
    subscriptions_changed: Notify,
}

impl Peers {
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        Ok(Self {
            token: InstanceToken::random()?,
            outbox: Arc::default(),
            stale: Stale::default(),
            locks: Locks::default(),
            lock_freed: Notify::new(),
            keys_changed: Notify::new(),
            subscriptions_changed: Notify::new(),
        })
    }

    pub(crate) fn outbox(&self) -> Arc<Outbox> {
        Arc::clone(&self.outbox)
    }

    /// Returns when another instance has changed topics or subscriptions.
    pub(crate) async fn subscriptions_changed(&self) {
        self.subscriptions_changed.notified().await;
    }

    /// Returns when another instance has let go of a lock.
    pub(crate) async fn lock_freed(&self) {
        self.lock_freed.notified().await;
    }
}

impl Broker {
    /// Starts whatever several instances need, if there may be several.
    pub(crate) fn join_peers(&self, tasks: &mut JoinSet<()>) {
        if self.peers.is_none() {
            return;
        }
        if let Some(listener) = self.store.listen() {
            let broker = self.clone();
            tasks.spawn(async move { broker.keep_hearing(listener).await });
        }
        let broker = self.clone();
        tasks.spawn(async move { broker.keep_fresh().await });
        let broker = self.clone();
        tasks.spawn(async move { broker.keep_telling().await });
    }

    /// Lets go of what this instance holds, and tells what was not told yet.
    pub(crate) async fn leave_peers(&self) {
        let Some(peers) = &self.peers else { return };
        let farewell = async {
            self.release_locks(peers).await;
            self.tell_waiting(peers).await
        };
        let time = std::time::Duration::from_millis(FAREWELL.get());
        if let Ok(Err(error)) = tokio::time::timeout(time, farewell).await {
            tracing::warn!(%error, "other instances were not told that this one ends");
        }
    }

    /// Something may be ready in a queue: whoever waits for it elsewhere may look.
    pub(crate) fn tell_ready(&self, queue: &QueueName) {
        if let Some(peers) = &self.peers {
            peers.outbox.ready(queue);
        }
    }

    /// A queue was created, changed, paused, resumed or deleted.
    pub(crate) fn tell_queue_changed(&self, queue: &QueueName) {
        if let Some(peers) = &self.peers {
            peers.outbox.queue(queue);
        }
    }

    /// An entry of the registry was written.
    pub(crate) fn tell_entry(&self, kind: EntryKind, name: &str) {
        if let Some(peers) = &self.peers
            && let Ok(name) = EntryName::new(name)
        {
            peers.outbox.entry(EntryKey { kind, name });
        }
    }

    /// Returns when another instance has changed the API keys.
    pub(crate) async fn keys_changed(&self) {
        match &self.peers {
            Some(peers) => peers.keys_changed.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Tells the others what happens here, for as long as the broker runs.
    async fn keep_telling(&self) {
        let Some(peers) = &self.peers else { return };
        loop {
            let wait = match self.tell_next(peers).await {
                Ok(()) => outbox::COALESCE,
                Err(error) => {
                    tracing::warn!(%error, "other instances were not told yet what happened here");
                    outbox::TRY_AGAIN
                }
            };
            crate::clock::pause(wait).await;
        }
    }

    async fn tell_next(&self, peers: &Peers) -> Result<(), BrokerError> {
        peers.outbox.some().await;
        self.tell_waiting(peers).await
    }

    async fn tell_waiting(&self, peers: &Peers) -> Result<(), BrokerError> {
        let mut untold = peers.outbox.take();
        while let Some(signals) = untold.next_few() {
            if let Err(error) = self.store.tell(signals.clone()).await {
                peers.outbox.put_back(signals, untold);
                return Err(error.into());
            }
        }
        Ok(())
    }
}
