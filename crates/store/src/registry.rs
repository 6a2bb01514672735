//! The registry: small versioned entries that the layers above keep, such as API keys, subscriptions, operations
//! and breaker rows. Several change together or not at all, each only if it is still what the caller saw.

use bytes::Bytes;
use redrive_core::invalid::{Invalid, Problem};
use redrive_core::limits::{BATCH_ITEMS_MAX, REGISTRY_KEY_BYTES_MAX, REGISTRY_VALUE_BYTES_MAX};

/// What kind of thing an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// An API key.
    ApiKey,
    /// A subscription of the event bus.
    Subscription,
    /// A topic of the event bus.
    Topic,
    /// A long-running operation.
    Operation,
    /// The shared row of a circuit breaker.
    Breaker,
    /// A lock of a sweeper.
    Lock,
}

impl EntryKind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::ApiKey, Self::Subscription, Self::Topic, Self::Operation, Self::Breaker, Self::Lock];

    /// The word a store writes for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ApiKey => "api_key",
            Self::Subscription => "subscription",
            Self::Topic => "topic",
            Self::Operation => "operation",
            Self::Breaker => "breaker",
            Self::Lock => "lock",
        }
    }
}

/// The name of an entry among those of its kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryName(String);

impl EntryName {
    /// A name of 1 to [`REGISTRY_KEY_BYTES_MAX`] bytes without control characters.
    pub fn new(name: impl Into<String>) -> Result<Self, Invalid> {
        let name = name.into();
        if name.is_empty() {
            return Err(Invalid::new("name", Problem::Empty));
        }
        Invalid::check_length("name", name.len(), REGISTRY_KEY_BYTES_MAX, "bytes")?;
        match name.char_indices().find(|(_, c)| c.is_control()) {
            Some((at, _)) => {
                let allowed = "text without control characters";
                Err(Invalid::new("name", Problem::BadCharacter { at, allowed }))
            }
            None => Ok(Self(name)),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The address of an entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryKey {
    /// What kind of thing it is.
    pub kind: EntryKind,
    /// Its name among those.
    pub name: EntryName,
}

/// An entry as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its address.
    pub key: EntryKey,
    /// Raised by every write. A version is never used twice, also not after a delete.
    pub version: u64,
    /// What the layer above wrote; nobody here looks into it.
    pub value: Bytes,
}

/// What an entry must be for a write to go ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Whatever it is.
    Anything,
    /// Not there.
    Absent,
    /// At this version.
    Version(u64),
}

impl Expect {
    /// Whether an entry at that version, or none, is as expected.
    pub fn holds(self, actual: Option<u64>) -> bool {
        match self {
            Self::Anything => true,
            Self::Absent => actual.is_none(),
            Self::Version(version) => actual == Some(version),
        }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Which entry.
    pub key: EntryKey,
    /// What it must be.
    pub expect: Expect,
    /// What it becomes; `None` deletes it.
    pub value: Option<Bytes>,
}

/// Changes that happen together or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writes(Vec<Write>);

impl Writes {
    /// Refuses too many, too large, and two of the same entry.
    pub fn new(writes: Vec<Write>) -> Result<Self, Invalid> {
        Invalid::check_length("writes", writes.len(), BATCH_ITEMS_MAX, "items")?;
        for write in &writes {
            let size = write.value.as_ref().map_or(0, Bytes::len);
            Invalid::check_length("value", size, REGISTRY_VALUE_BYTES_MAX, "bytes")?;
        }
        let mut keys: Vec<&EntryKey> = writes.iter().map(|write| &write.key).collect();
        keys.sort_unstable();
        if keys.windows(2).any(|pair| pair.first() == pair.last()) {
            return Err(Invalid::unusable("writes", "an entry must not be written twice"));
        }
        Ok(Self(writes))
    }

    /// The changes, in order.
    pub fn items(&self) -> &[Write] {
        &self.0
    }

    /// The changes, in order.
    pub fn into_items(self) -> Vec<Write> {
        self.0
    }
}

/// What became of the changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteOutcome {
    /// All of them happened; the new version of each, `None` where it was deleted.
    Committed(Vec<Option<u64>>),
    /// None of them happened.
    Conflict {
        /// The first change whose expectation did not hold.
        index: usize,
        /// The version that was found instead.
        actual: Option<u64>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(name: &str, size: usize) -> Write {
        let key = EntryKey { kind: EntryKind::Operation, name: EntryName::new(name).unwrap() };
        Write { key, expect: Expect::Anything, value: Some(vec![0; size].into()) }
    }

    #[test]
    fn an_entry_is_written_once_per_call_and_within_its_limit() {
        assert!(Writes::new(vec![write("a", 1), write("b", 1)]).is_ok());
        assert_eq!(Writes::new(vec![write("a", 1), write("a", 1)]).unwrap_err().field, "writes");
        assert_eq!(Writes::new(vec![write("a", REGISTRY_VALUE_BYTES_MAX + 1)]).unwrap_err().field, "value");
    }

    #[test]
    fn expectations_are_exact() {
        assert!(Expect::Absent.holds(None) && !Expect::Absent.holds(Some(1)));
        assert!(
            Expect::Version(2).holds(Some(2))
                && !Expect::Version(2).holds(Some(3))
                && !Expect::Version(2).holds(None)
        );
        assert!(Expect::Anything.holds(None) && Expect::Anything.holds(Some(9)));
    }
}
