//! Append-only logs with retention: the audit trail, and the events of topics that keep them.

use bytes::Bytes;
use redrive_core::time::Timestamp;

use crate::registry::EntryName;

/// The name of a log.
pub type LogName = EntryName;

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
