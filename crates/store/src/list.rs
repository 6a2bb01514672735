//! list: a look that takes no lease.

use redrive_core::invalid::Invalid;
use redrive_core::message::{Message, MessageId};
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;

use crate::filter::Filter;
use crate::limit::Limit;

/// A page of the messages of a queue that match, by id, which is the order in which they were made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRequest {
    /// The queue.
    pub queue: QueueName,
    /// Which messages.
    pub filter: Filter,
    /// Only what lies beyond this one: where the last page ended.
    pub after: Option<MessageId>,
    /// At most so many.
    pub limit: Limit,
    /// The newest first, instead of the oldest.
    pub newest_first: bool,
}

impl ListRequest {
    /// The first page of what matches.
    pub fn new(queue: QueueName, filter: Filter) -> Self {
        Self { queue, filter, after: None, limit: Limit::MAX, newest_first: false }
    }

    /// Refuses what is over a limit, naming the field.
    pub fn check(&self) -> Result<(), Invalid> {
        self.filter.check()
    }
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// When, by the clock that decided which of them are ready.
    pub at: Timestamp,
    /// The messages, about [`BATCH_BYTES_MAX`](redrive_core::limits::BATCH_BYTES_MAX) of them at most.
    pub messages: Vec<Message>,
    /// Where the next page starts; `None` is the end. A page may be short, or empty, and still have a next.
    pub next: Option<MessageId>,
}
