//! The keys that there are, as this instance knows them.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use redrive_core::access::{KeyId, SecretHash, Token};
use redrive_core::time::Timestamp;
use tokio::sync::watch;

use super::Unauthenticated;
use super::record::ApiKey;

/// The version under which the key from the environment is known: nothing that a store keeps is newer.
pub(crate) const KEPT_NOWHERE: u64 = u64::MAX;

/// A key while the server runs.
#[derive(Debug)]
pub(crate) struct LiveKey {
    pub(crate) id: KeyId,
    /// What it is now, and the version under which the store keeps it; whoever waits under it is told of a change.
    current: watch::Sender<(Arc<ApiKey>, u64)>,
    consumers: AtomicU32,
}

impl LiveKey {
    fn new(key: ApiKey, version: u64) -> Self {
        Self {
            id: key.id,
            current: watch::Sender::new((Arc::new(key), version)),
            consumers: AtomicU32::new(0),
        }
    }

    pub(crate) fn current(&self) -> Arc<ApiKey> {
        Arc::clone(&self.current.borrow().0)
    }

    /// What it is now and the version of that, at one moment.
    pub(crate) fn current_version(&self) -> (Arc<ApiKey>, u64) {
        self.current.borrow().clone()
    }

    /// Whether it stands in the environment, and is kept nowhere.
    pub(crate) fn is_of_environment(&self) -> bool {
        self.current.borrow().1 == KEPT_NOWHERE
    }

    pub(crate) fn watch(&self) -> watch::Receiver<(Arc<ApiKey>, u64)> {
        self.current.subscribe()
    }

    /// Counts one more consumer, unless there are as many as there may be.
    pub(crate) fn count_consumer(self: &Arc<Self>, max: Option<u32>) -> Option<Consuming> {
        let counted = self.consumers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
            (max.is_none_or(|max| count < max)).then_some(count.saturating_add(1))
        });
        counted.ok().map(|_| Consuming(Arc::clone(self)))
    }
}

/// A consumer that is counted until it is dropped.
#[derive(Debug)]
pub struct Consuming(Arc<LiveKey>);

impl Drop for Consuming {
    fn drop(&mut self) {
        self.0.consumers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Who was let in, by which secret.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) live: Arc<LiveKey>,
    pub(crate) key: Arc<ApiKey>,
    pub(crate) secret: SecretHash,
}

/// The keys that there are.
#[derive(Debug, Default)]
pub(crate) struct Keys(RwLock<HashMap<KeyId, Arc<LiveKey>>>);

impl Keys {
    pub(crate) fn get(&self, id: KeyId) -> Option<Arc<LiveKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// All of them, by id.
    pub(crate) fn all(&self) -> Vec<Arc<LiveKey>> {
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Arc<LiveKey>> = keys.values().cloned().collect();
        drop(keys);
        all.sort_unstable_by_key(|live| live.id);
        all
    }

    /// Takes over what the store keeps. What is older than what is known is not news.
    pub(crate) fn note(&self, key: ApiKey, version: u64) {
        let mut keys = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match keys.get(&key.id) {
            Some(live) => {
                live.current.send_if_modified(|current| {
                    let news = version > current.1;
                    if news {
                        *current = (Arc::new(key), version);
                    }
                    news
                });
            }
            None => drop(keys.insert(key.id, Arc::new(LiveKey::new(key, version)))),
        }
    }

    /// Ends what the store keeps no more: its end was heard of by others, who made room. What was made since somebody
    /// looked into the store was not seen there.
    pub(crate) fn forget_others(&self, kept: &HashSet<KeyId>, looked: Timestamp) {
        let mut keys = self.0.write().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|id, live| {
            let known = kept.contains(id) || live.is_of_environment() || live.current().created_at >= looked;
            if !known {
                live.current.send_modify(|(key, _)| Arc::make_mut(key).revoked_at = Some(looked));
            }
            known
        });
    }

    /// The key that ended first, to make room for another.
    pub(crate) fn first_ended(&self, now: Timestamp) -> Option<Arc<LiveKey>> {
        let ended = |live: &Arc<LiveKey>| {
            let key = live.current();
            let end = [key.revoked_at, key.expires_at].into_iter().flatten().min();
            end.filter(|_| !key.is_alive(now))
        };
        let all = self.all().into_iter().filter_map(|live| Some((ended(&live)?, live)));
        all.min_by_key(|(end, _)| *end).map(|(_, live)| live)
    }

    /// Who shows that token.
    pub(crate) fn authenticate(&self, token: &Token, now: Timestamp) -> Result<Session, Unauthenticated> {
        let live = self.get(token.id).ok_or(Unauthenticated::Invalid)?;
        let key = live.current();
        let secret = key.secret_of(&token.secret).ok_or(Unauthenticated::Invalid)?;
        key.until(&secret, now)?;
        Ok(Session { live, key, secret })
    }
}
