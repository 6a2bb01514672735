//! A lock that one instance holds at a time, taken, kept and let go of at the store.
//!
//! It saves work and nothing else: an instance that was stopped for longer than its lock lives goes on for one step before it
//! finds out, so whatever is done under it must be right without it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{EntryKey, EntryKind, EntryName, Expect, LockClaim, Write, WriteOutcome, Writes};

use super::Peers;
use crate::broker::Broker;
use crate::error::BrokerError;

/// How long a lock is held without being renewed.
pub(crate) const LIFETIME: Millis = Millis::from_secs(30);
/// A lock that lives for longer than this is not renewed yet.
const FRESH: Millis = Millis::from_secs(20);

/// The locks that this instance asked for and that are nobody else's as far as it knows: until when they are its own, by their names.
#[derive(Debug, Default)]
pub(super) struct Locks(Mutex<HashMap<&'static str, Timestamp>>);

impl Locks {
    fn lock(&self) -> MutexGuard<'_, HashMap<&'static str, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Broker {
    /// Takes a lock, or keeps it; says whether this instance holds it.
    pub(crate) async fn hold_lock(&self, peers: &Peers, name: &'static str) -> Result<bool, BrokerError> {
        let now = self.now();
        if peers.locks.lock().get(name).is_some_and(|until| until.since(now) > FRESH) {
            return Ok(true);
        }
        // What was known before is known no more. Without an answer it may be ours, and is let go of in the end.
        peers.locks.lock().insert(name, now);
        let is_held = self.store.hold_lock(now, &claim(peers, name)?, LIFETIME).await?;
        if is_held {
            peers.locks.lock().insert(name, now.plus(LIFETIME));
        } else {
            peers.locks.lock().remove(name);
        }
        Ok(is_held)
    }

    /// Lets go of all locks that are still this instance's own.
    pub(super) async fn release_locks(&self, peers: &Peers) {
        let held: Vec<&'static str> = peers.locks.lock().drain().map(|(name, _)| name).collect();
        for name in held {
            let Ok(claim) = claim(peers, name) else { continue };
            match self.store.release_lock(&claim).await {
                Ok(true) => self.tell_entry(EntryKind::Lock, name),
                // It was never taken, or another instance has taken it over.
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, lock = name, "a lock ends by itself"),
            }
        }
    }

    /// Writes or deletes an entry if it is as expected; answers its version, and nothing where it was not.
    pub(crate) async fn swap_entry(
        &self,
        key: EntryKey,
        expect: Expect,
        value: Option<Bytes>,
    ) -> Result<Option<Option<u64>>, BrokerError> {
        let writes = Writes::new(vec![Write { key, expect, value }])?;
        match self.store.registry_write(writes).await? {
            WriteOutcome::Committed(versions) => Ok(Some(versions.into_iter().next().flatten())),
            WriteOutcome::Conflict { .. } => Ok(None),
        }
    }
}

fn claim(peers: &Peers, name: &str) -> Result<LockClaim, BrokerError> {
    Ok(LockClaim { name: EntryName::new(name)?, token: peers.token.for_locks() })
}
