//! redrive, discard, move and reschedule: what an operator does to many messages at a time.

use redrive_core::invalid::Invalid;
use redrive_core::message::MessageId;
use redrive_core::queue::QueueName;
use thiserror::Error;

use crate::error::RetryAdvice;
use crate::filter::Filter;
use crate::limit::Limit;

/// One step over the messages of a queue that match, in the order of their ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The queue.
    pub queue: QueueName,
    /// Which messages. Those in a state that the verb does not start from are passed over.
    pub filter: Filter,
    /// Only ids after this one: where the last step ended.
    pub after: Option<MessageId>,
    /// Only ids up to this one, which is the last.
    pub until: Option<MessageId>,
    /// At most so many messages.
    pub limit: Limit,
    /// Count them and change nothing.
    pub dry_run: bool,
}

impl Selection {
    /// The first step over what matches.
    pub fn new(queue: QueueName, filter: Filter) -> Self {
        Self { queue, filter, after: None, until: None, limit: Limit::MAX, dry_run: false }
    }

    /// Refuses what is over a limit, naming the field.
    pub fn check(&self) -> Result<(), Invalid> {
        self.filter.check()
    }
}

/// What one step did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bulk {
    /// How many messages matched, dry run or not.
    pub matched: u64,
    /// Which of them were changed.
    pub applied: Vec<MessageId>,
    /// Which of them were not, and why.
    pub refused: Vec<(MessageId, BulkRefusal)>,
    /// Where the next step starts; `None` is the end. A step may do less than its limit, or nothing, and still
    /// have a next.
    pub next: Option<MessageId>,
}

/// Why one message of many was left as it was.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BulkRefusal {
    /// It was gone before its turn came.
    #[error("the message is not there any more")]
    NotFound,
    /// Its unique dedup key is taken, or the target has a message of that id.
    #[error("there is another message with its dedup key or id: {0}")]
    Duplicate(MessageId),
    /// The target has as many pairs of type and source as it may.
    #[error("type and source: a queue has at most {max} distinct pairs")]
    TooManyClasses {
        /// The limit.
        max: usize,
    },
    /// The queue holds as many dedup keys as it may.
    #[error("dedup_key: a queue holds at most {max} keys")]
    TooManyDedupKeys {
        /// The limit.
        max: usize,
    },
}

impl BulkRefusal {
    /// Whether a retry helps.
    pub fn advice(&self) -> RetryAdvice {
        match self {
            Self::TooManyDedupKeys { .. } => RetryAdvice::Retry,
            Self::NotFound | Self::Duplicate(_) | Self::TooManyClasses { .. } => RetryAdvice::GiveUp,
        }
    }

    /// The stable word for it in APIs, metrics and logs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "NOT_FOUND",
            Self::Duplicate(_) => "DUPLICATE",
            Self::TooManyClasses { .. } => "TOO_MANY_TYPES",
            Self::TooManyDedupKeys { .. } => "TOO_MANY_DEDUP_KEYS",
        }
    }
}
