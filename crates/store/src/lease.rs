//! lease: who asks for what, and what is handed out.

use redrive_core::invalid::Invalid;
use redrive_core::lease::ConsumerName;
use redrive_core::limits::{FILTER_VALUES_MAX, LEASE_MAX};
use redrive_core::message::{Lane, Message, MessageId, MessageType, Source};
use redrive_core::queue::QueueName;
use redrive_core::time::{Millis, Timestamp};

use crate::limit::Limit;
use crate::sweep::Swept;

/// Which lane a consumer serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LaneChoice {
    /// What the queue shares out: both lanes, or the fresh one where retries are separate.
    #[default]
    Queue,
    /// This lane alone.
    Only(Lane),
}

/// Types and sources that a consumer takes; an empty list takes all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClassFilter {
    /// Types it takes.
    pub kinds: Vec<MessageType>,
    /// Sources it takes.
    pub sources: Vec<Source>,
}

impl ClassFilter {
    /// Whether it takes a message of that type and source.
    pub fn takes(&self, kind: &MessageType, source: &Source) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(kind))
            && (self.sources.is_empty() || self.sources.contains(source))
    }
}

/// How the messages are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pick {
    /// By lane, fairness, priority and order.
    #[default]
    Fair,
    /// One message to see whether an outage is over: a ready one with the fewest attempts, and another than the
    /// last probe where there is another, whatever its lane.
    Probe {
        /// The last probe.
        avoid: Option<MessageId>,
    },
}

/// A consumer asks for work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRequest {
    /// From which queue.
    pub queue: QueueName,
    /// How many messages at most. Fewer come where there are no more, where more would weigh over
    /// [`BATCH_BYTES_MAX`](redrive_core::limits::BATCH_BYTES_MAX), or where [`Leased::more`] says so.
    pub limit: Limit,
    /// Who asks.
    pub consumer: ConsumerName,
    /// For how long; `None` leaves it to message and queue.
    pub time: Option<Millis>,
    /// From which lane.
    pub lane: LaneChoice,
    /// Of which types and sources.
    pub filter: ClassFilter,
    /// How they are chosen.
    pub pick: Pick,
    /// Chance for the judge, which sees what this call finds overdue.
    pub seed: u64,
}

impl LeaseRequest {
    /// A request for up to `limit` messages, with nothing special about it.
    pub fn new(queue: QueueName, limit: Limit, consumer: ConsumerName, seed: u64) -> Self {
        Self {
            queue,
            limit,
            consumer,
            time: None,
            lane: LaneChoice::Queue,
            filter: ClassFilter::default(),
            pick: Pick::Fair,
            seed,
        }
    }

    /// Refuses what is over a limit, naming the field.
    pub fn check(&self) -> Result<(), Invalid> {
        Invalid::check_length("types", self.filter.kinds.len(), FILTER_VALUES_MAX, "items")?;
        Invalid::check_length("sources", self.filter.sources.len(), FILTER_VALUES_MAX, "items")?;
        match self.time {
            Some(time) => time.within("lease_time", Millis::new(1), LEASE_MAX).map(|_| ()),
            None => Ok(()),
        }
    }
}

/// What was handed out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Leased {
    /// When, by the clock that decided.
    pub at: Timestamp,
    /// The messages, each with its lease, in the order in which they were picked; lease ids grow in that order.
    pub messages: Vec<Message>,
    /// Whether there may be more to have at once. `false` means that this call has seen that nothing is left; `true`
    /// also where it is full, weighs enough, ended only some of what is overdue, or met what others hold.
    pub more: bool,
    /// What the call found overdue or too old on its way.
    pub swept: Swept,
}
