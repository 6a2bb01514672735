//! Locks: who of several instances does what only one need do, for as long as it is heard of.
//!
//! A lock saves work and protects nothing: its owner may be stopped for longer than it lives, and goes on as if it had it. Whatever
//! is done under one must be right without it.
//!
//! Where a store has nothing better, a lock is an entry of the registry with a token and an end, swapped in for what was read.

use std::fmt;

use redrive_core::time::{Millis, Timestamp};
use serde_json::{Value, json};

use crate::{Entry, EntryKey, EntryKind, EntryName, Expect, Store, StoreError, Write, WriteOutcome, Writes};

/// Who asks for a lock: another one each time that an instance starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LockToken(u128);

impl LockToken {
    /// A token that was made by chance.
    pub const fn new(token: u128) -> Self {
        Self(token)
    }
}

impl fmt::Display for LockToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A lock, and who asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockClaim {
    /// Which lock.
    pub name: EntryName,
    /// Who asks.
    pub token: LockToken,
}

impl LockClaim {
    fn key(&self) -> EntryKey {
        EntryKey { kind: EntryKind::Lock, name: self.name.clone() }
    }

    fn is_in(&self, entry: &Entry) -> bool {
        read(entry).is_some_and(|(token, _)| token == self.token.to_string())
    }

    /// Whether an entry keeps this one from the lock. What would live for longer than twice a life was written by a clock that
    /// nobody shares, and what cannot be read by nobody who knows how: neither holds anybody back for ever.
    fn is_barred_by(&self, entry: &Entry, now: Timestamp, lifetime: Millis) -> bool {
        let latest = now.plus(lifetime).plus(lifetime);
        !self.is_in(entry) && read(entry).is_some_and(|(_, until)| until > now && until <= latest)
    }
}

/// The token and the end of a lock.
fn read(entry: &Entry) -> Option<(String, Timestamp)> {
    let written: Value = serde_json::from_slice(&entry.value).ok()?;
    let until = Timestamp::from_millis(written.get("until")?.as_u64()?);
    Some((written.get("token")?.as_str()?.to_owned(), until))
}

/// [`Store::hold_lock`] by the registry.
pub(crate) async fn hold<S: Store + ?Sized>(
    store: &S,
    now: Timestamp,
    claim: &LockClaim,
    lifetime: Millis,
) -> Result<bool, StoreError> {
    let expect = match store.registry_get(&claim.key()).await? {
        Some(entry) if claim.is_barred_by(&entry, now, lifetime) => return Ok(false),
        Some(entry) => Expect::Version(entry.version),
        None => Expect::Absent,
    };
    let written = json!({ "token": claim.token.to_string(), "until": now.plus(lifetime).as_millis() });
    swap(store, Write { key: claim.key(), expect, value: Some(written.to_string().into()) }).await
}

/// [`Store::release_lock`] by the registry.
pub(crate) async fn release<S: Store + ?Sized>(store: &S, claim: &LockClaim) -> Result<bool, StoreError> {
    match store.registry_get(&claim.key()).await? {
        Some(entry) if claim.is_in(&entry) => {
            let expect = Expect::Version(entry.version);
            swap(store, Write { key: claim.key(), expect, value: None }).await
        }
        _ => Ok(false),
    }
}

async fn swap<S: Store + ?Sized>(store: &S, write: Write) -> Result<bool, StoreError> {
    let writes = Writes::new(vec![write]).expect("one small entry");
    Ok(matches!(store.registry_write(writes).await?, WriteOutcome::Committed(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Millis = Millis::from_secs(30);

    fn claim(token: u128) -> LockClaim {
        LockClaim { name: EntryName::new("sweep").unwrap(), token: LockToken::new(token) }
    }

    fn entry(value: &str) -> Entry {
        Entry { key: claim(1).key(), version: 1, value: value.to_owned().into() }
    }

    fn until(at: u64) -> Entry {
        entry(&json!({ "token": claim(1).token.to_string(), "until": at }).to_string())
    }

    fn is_barred(token: u128, entry: &Entry) -> bool {
        claim(token).is_barred_by(entry, Timestamp::from_millis(100_000), LIFETIME)
    }

    #[test]
    fn a_lock_bars_others_until_its_end() {
        assert!(is_barred(2, &until(100_001)) && is_barred(2, &until(130_000)));
        assert!(!is_barred(2, &until(100_000)) && !is_barred(2, &until(0)));
        assert!(!is_barred(1, &until(130_000)), "it is its own");
    }

    #[test]
    fn what_nobody_could_have_written_bars_nobody() {
        assert!(is_barred(2, &until(160_000)) && !is_barred(2, &until(160_001)));
        for value in ["", "{}", "7", "null", r#"{"token":"a"}"#, r#"{"token":1,"until":120000}"#] {
            assert!(!is_barred(2, &entry(value)), "{value}");
        }
    }
}
