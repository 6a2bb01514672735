//! Who takes work, and how that goes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::schema;
use crate::time::Time;

/// A consumer, by the name that it gave when it leased. Those that gave none are one, whose name is empty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConsumerView {
    /// Its name.
    #[schema(value_type = schema::ConsumerName)]
    pub consumer: String,
    /// The queues that it was seen at, by name; 100 at most.
    #[schema(value_type = Vec<schema::QueueName>)]
    pub queues: Vec<String>,
    /// How many messages it has.
    pub held: u64,
    /// How many of its leases have run out and were not ended yet.
    pub overdue: u64,
    /// For how long it has had the one that it has had longest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_lease_ms: Option<u64>,
    /// Messages that it was handed, since this instance first saw it.
    pub leased: u64,
    /// Messages that it acked.
    pub acked: u64,
    /// Attempts that it said had failed, buried ones included.
    pub failed: u64,
    /// Leases of it that ran out.
    pub expired: u64,
    /// Messages that it gave back unharmed, or that were taken back from it.
    pub released: u64,
    /// Messages that it acked, a second, over the last minute.
    pub acked_per_s: f64,
    /// Attempts that failed or ran out, a second, over the last minute.
    pub failed_per_s: f64,
    /// When it first leased or settled something at this instance; where it did not, since when it has had its oldest lease.
    pub first_seen: Time,
    /// When it last did; where it did not, when it took its newest lease.
    pub last_seen: Time,
    /// Whether it was seen at this instance. Where not, only its leases are known: it talks to another instance, or has
    /// done nothing since this one started.
    pub here: bool,
}

/// Who takes work from the queues that the caller may see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Consumers {
    /// When.
    pub at: Time,
    /// The consumers, by name. What they did is what this instance has seen of it; what they hold is what the store says.
    pub consumers: Vec<ConsumerView>,
    /// Whether every lease was looked at, and no consumer was left out or forgotten to make room. The first 1,000 queues by
    /// name are looked at.
    pub complete: bool,
}
