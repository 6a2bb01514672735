//! A lock that one instance holds at a time: an entry of the registry with a token and an end.
//!
//! It is taken, kept and let go of by compare-and-set, and may be taken over once its end has passed by the store's clock. It
//! saves work and nothing else: an instance that was stopped for longer than its lock lives goes on for one step before it
//! finds out, so whatever is done under it must be right without it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{EntryKey, EntryKind, EntryName, Expect, Write, WriteOutcome, Writes};
use serde::{Deserialize, Serialize};

use super::{InstanceToken, Peers};
use crate::broker::Broker;
use crate::error::BrokerError;

/// How long a lock is held without being renewed.
pub(crate) const LIFETIME: Millis = Millis::from_secs(30);
/// A lock that lives for longer than this is not renewed yet.
const FRESH: Millis = Millis::from_secs(20);
/// A lock that would live for longer than this was written by a clock that nobody shares, and holds nobody back.
const LIFETIME_MAX: Millis = Millis::from_secs(60);

#[derive(Debug, Serialize, Deserialize)]
struct Written {
    token: String,
    until: u64,
}

/// A lock that this instance took and did not see taken over.
#[derive(Debug, Clone, Copy)]
struct Held {
    version: u64,
    until: Timestamp,
}

/// The locks that this instance holds, by their names.
#[derive(Debug, Default)]
pub(super) struct Locks(Mutex<HashMap<&'static str, Held>>);

impl Locks {
    fn lock(&self) -> MutexGuard<'_, HashMap<&'static str, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Broker {
    /// Takes a lock, or keeps it; says whether this instance holds it.
    pub(crate) async fn hold_lock(&self, peers: &Peers, name: &'static str) -> Result<bool, BrokerError> {
        let now = self.now();
        let held = peers.locks.lock().get(name).copied();
        let expect = match held {
            Some(held) if held.until.since(now) > FRESH => return Ok(true),
            Some(held) => Some(Expect::Version(held.version)),
            None => self.claimable(peers.token, name, now).await?,
        };
        let Some(expect) = expect else { return Ok(false) };
        // Whatever comes of it, what was known before is known no more.
        peers.locks.lock().remove(name);
        let until = now.plus(LIFETIME);
        let written = Written { token: peers.token.to_string(), until: until.as_millis() };
        let value = serde_json::to_vec(&written).expect("plain fields are JSON");
        let version = self.swap_entry(key(name)?, expect, Some(value.into())).await?;
        if let Some(version) = version.flatten() {
            peers.locks.lock().insert(name, Held { version, until });
        }
        Ok(version.is_some())
    }

    /// What the entry must be for this instance to take the lock; nothing where another holds it.
    async fn claimable(
        &self,
        token: InstanceToken,
        name: &'static str,
        now: Timestamp,
    ) -> Result<Option<Expect>, BrokerError> {
        let Some(entry) = self.store.registry_get(&key(name)?).await? else {
            return Ok(Some(Expect::Absent));
        };
        // What cannot be read holds nobody back for ever.
        let held = serde_json::from_slice::<Written>(&entry.value).is_ok_and(|written| {
            let left = Timestamp::from_millis(written.until).since(now);
            written.token != token.to_string() && left > Millis::ZERO && left <= LIFETIME_MAX
        });
        Ok((!held).then_some(Expect::Version(entry.version)))
    }

    /// Lets go of all locks that are still this instance's own.
    pub(super) async fn release_locks(&self, peers: &Peers) {
        let held: Vec<(&'static str, Held)> = peers.locks.lock().drain().collect();
        for (name, Held { version, .. }) in held {
            let Ok(key) = key(name) else { continue };
            match self.swap_entry(key, Expect::Version(version), None).await {
                Ok(Some(_)) => self.tell_entry(EntryKind::Lock, name),
                // Another instance has taken it over.
                Ok(None) => {}
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

fn key(name: &str) -> Result<EntryKey, BrokerError> {
    Ok(EntryKey { kind: EntryKind::Lock, name: EntryName::new(name)? })
}
