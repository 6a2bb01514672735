//! The names of keys.
//!
//! | key | what |
//! |---|---|
//! | `P:{P}:store` | the record of the store: its format, the key of receipts, the epoch, the last version |
//! | `P:{P}:queues`, `P:{P}:names` | the id of each queue by its name, and the names in order |
//! | `P:{P}:gone` | id and name of queues that are being created or deleted |
//! | `P:{P}:lock:NAME` | the token of who holds a lock; the server ends it |
//! | `P:{P}:entries:KIND`, `P:{P}:order:KIND` | the registry, and its names in order |
//! | `P:{log:NAME}:records`, `P:{log:NAME}:last` | a log, and the number of its last record |
//! | `P:{ID}:…` | whatever belongs to the queue of that id; see `scripts/base.lua` and `scripts/lines.lua` |
//! | `P:signals` | the channel on which instances tell each other |
//!
//! What is in braces decides in which slot of a cluster a key lies: all of a queue in one. Nothing that somebody outside has
//! written is in braces, but the name of a log, in which braces are written as `%7b` and `%7d`.

use redrive_store::{EntryKind, LogName};

use crate::words::escape;

/// How the names of all keys begin.
#[derive(Debug, Clone)]
pub(crate) struct Keys(String);

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self(prefix.to_owned())
    }

    fn shared(&self, name: &str) -> String {
        format!("{0}:{{{0}}}:{name}", self.0)
    }

    pub(crate) fn store(&self) -> String {
        self.shared("store")
    }

    pub(crate) fn queues(&self) -> String {
        self.shared("queues")
    }

    pub(crate) fn names(&self) -> String {
        self.shared("names")
    }

    pub(crate) fn gone(&self) -> String {
        self.shared("gone")
    }

    pub(crate) fn lock(&self, name: &str) -> String {
        self.shared(&format!("lock:{name}"))
    }

    pub(crate) fn entries(&self, kind: EntryKind) -> String {
        self.shared(&format!("entries:{}", kind.name()))
    }

    pub(crate) fn order(&self, kind: EntryKind) -> String {
        self.shared(&format!("order:{}", kind.name()))
    }

    /// The record of a queue, and the key that is never there.
    pub(crate) fn queue(&self, id: &str) -> [String; 2] {
        [self.of_queue(id, "q"), self.of_queue(id, "!")]
    }

    /// How the keys of all queues begin, before the id in braces.
    pub(crate) fn queues_begin(&self) -> String {
        format!("{}:", self.0)
    }

    pub(crate) fn of_queue(&self, id: &str, name: &str) -> String {
        format!("{}:{{{id}}}:{name}", self.0)
    }

    pub(crate) fn log(&self, log: &LogName) -> [String; 2] {
        let name = escape(log.as_str()).replace('{', "%7b").replace('}', "%7d");
        [format!("{}:{{log:{name}}}:records", self.0), format!("{}:{{log:{name}}}:last", self.0)]
    }

    pub(crate) fn signals(&self) -> String {
        format!("{}:signals", self.0)
    }
}

/// The slot of a key in a cluster.
pub(crate) fn slot(key: &str) -> u16 {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
    let hashed = tag.filter(|tag| !tag.is_empty()).unwrap_or(key);
    let mut crc: u16 = 0;
    for byte in hashed.bytes() {
        crc ^= u16::from(byte) << 8;
        for _ in 0..8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
        }
    }
    crc % SLOTS
}

/// How many slots a cluster has.
pub(crate) const SLOTS: u16 = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_that_a_cluster_says() {
        // As `CLUSTER KEYSLOT` answers.
        assert_eq!(
            [slot("foo"), slot("123456789"), slot("{user1000}.following")],
            [12_182, 12_739, slot("user1000")]
        );
        assert_eq!(slot("foo{}{bar}"), slot("foo{}{bar}"));
    }

    #[test]
    fn all_keys_of_a_queue_are_in_one_slot_whatever_is_in_them() {
        let keys = Keys::new("redrive");
        let first = slot(&keys.of_queue("17", "q"));
        for name in ["!", "p", "r:f:5:1::{other}", "l:r::}{"] {
            assert_eq!(slot(&keys.of_queue("17", name)), first, "{name}");
        }
    }

    #[test]
    fn both_keys_of_a_log_are_in_one_slot_whatever_it_is_called() {
        let keys = Keys::new("redrive");
        for name in ["audit", "a{b}c", "}{", "%7b"] {
            let [records, last] = keys.log(&LogName::new(name).unwrap());
            assert_eq!(slot(&records), slot(&last), "{name}");
        }
    }
}
