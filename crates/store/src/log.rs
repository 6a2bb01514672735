//! Append-only logs with retention: the audit trail, and the events of topics that keep them.

use bytes::Bytes;
use redrive_core::invalid::Invalid;
use redrive_core::limits::{BATCH_ITEMS_MAX, REGISTRY_VALUE_BYTES_MAX};
use redrive_core::time::Timestamp;

use crate::registry::EntryName;

/// The name of a log.
pub type LogName = EntryName;

/// Records for a log: at most so many, none too large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append(Vec<Bytes>);

impl Append {
    /// Refuses too many records, and records that are too large.
    pub fn new(values: Vec<Bytes>) -> Result<Self, Invalid> {
        Invalid::check_length("records", values.len(), BATCH_ITEMS_MAX, "items")?;
        for value in &values {
            Invalid::check_length("value", value.len(), REGISTRY_VALUE_BYTES_MAX, "bytes")?;
        }
        Ok(Self(values))
    }

    /// The records, in order.
    pub fn values(&self) -> &[Bytes] {
        &self.0
    }

    /// The records, in order.
    pub fn into_values(self) -> Vec<Bytes> {
        self.0
    }
}

/// Which records of a log are read, and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogRange {
    /// Those with a number above this one, the oldest first.
    After(u64),
    /// Those with a number below this one, the newest first.
    Before(u64),
}

/// A record of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRecord {
    /// Its number, from 1, larger than that of every record before it. A reader that has seen a number never
    /// finds a smaller one appear later.
    pub sequence: u64,
    /// When it was appended.
    pub at: Timestamp,
    /// What the layer above wrote.
    pub value: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_bounded_in_number_and_size() {
        assert!(Append::new(vec![Bytes::from(vec![0; REGISTRY_VALUE_BYTES_MAX])]).is_ok());
        let large = Append::new(vec![Bytes::from(vec![0; REGISTRY_VALUE_BYTES_MAX + 1])]).unwrap_err();
        let many = Append::new(vec![Bytes::new(); BATCH_ITEMS_MAX + 1]).unwrap_err();
        assert_eq!((large.field, many.field), ("value", "records"));
    }
}
