//! The server as a whole at one moment, and what somebody should look at.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::queue::{HistorySample, StateCounts};
use crate::schema;
use crate::time::Time;

/// What anyone may know: what time it is, by the clock that decides when leases end and messages are due, and who is let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerTime {
    /// Now.
    pub now: Time,
    /// The same in milliseconds since the Unix epoch.
    pub now_ms: u64,
    /// Whether the server wants a key.
    pub keys_needed: bool,
    /// Whether whoever shows no key is told counts of what happens.
    pub open_reading: bool,
}

/// The server that answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerView {
    /// Its version.
    pub version: String,
    /// Where it keeps its messages.
    pub store: String,
    /// What an acknowledged write survives: `nothing`, `process_crash`, `power_loss` or `disk_loss`.
    pub survives: String,
    /// Whether several instances may work on that store. What is counted in memory is then that of this instance only.
    pub shared: bool,
    /// When it started.
    pub started_at: Time,
}

/// Something that a person should look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttentionView {
    /// What it is.
    #[schema(value_type = schema::AttentionKind)]
    pub kind: String,
    /// How bad it is.
    #[schema(value_type = schema::Severity)]
    pub severity: String,
    /// The same as a sentence.
    pub detail: String,
    /// The queue that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::QueueName>)]
    pub queue: Option<String>,
    /// The subscription that it is about, or whose queue it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::SubscriptionId>)]
    pub subscription: Option<String>,
    /// The operation that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::OperationId>)]
    pub operation: Option<String>,
    /// How many messages it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// How old the oldest of them is: for how long it could have been leased, or its lease has been over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    /// Since when it has been so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// When it ends by itself, or is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

/// All queues that the caller may see, together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Overview {
    /// When.
    pub at: Time,
    /// How many queues were added up.
    pub queues: u64,
    /// Whether those are all that the caller may see. The first 1,000 by name are added up, as many as are sampled; the
    /// others are left out.
    pub complete: bool,
    /// How many messages are in each state.
    pub states: StateCounts,
    /// How many leases have run out and were not ended yet.
    pub overdue: u64,
    /// How far apart the samples are.
    pub interval_ms: u64,
    /// The sums of the queues' samples over the last 15 minutes, the oldest first. Medians cannot be added up and are left
    /// out.
    pub samples: Vec<HistorySample>,
    /// What somebody should look at, the worst first; 100 at most.
    pub attention: Vec<AttentionView>,
    /// How many more there are.
    pub attention_more: u64,
    /// The server that answers.
    pub server: ServerView,
}

/// A queue, as a row of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueRow {
    /// Its name.
    #[schema(value_type = schema::QueueName)]
    pub queue: String,
    /// The subscription whose queue it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::SubscriptionId>)]
    pub subscription: Option<String>,
    /// Whether the whole queue is paused now.
    pub paused: bool,
    /// How many of its fairness keys are paused now.
    pub pauses_of_keys: u64,
    /// How many messages are in each state.
    pub states: StateCounts,
    /// How many leases have run out and were not ended yet.
    pub overdue: u64,
    /// How long the oldest ready message has been ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_ready_age_ms: Option<u64>,
    /// Messages that came in, a second, over the last minute of samples.
    pub enqueued_per_s: f64,
    /// Messages that succeeded, a second.
    pub acked_per_s: f64,
    /// Attempts that failed, a second.
    pub failed_per_s: f64,
    /// Of the attempts that ended in that minute, the share that failed; left out where none ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_share: Option<f64>,
    /// How long half of the messages that were handed out at this instance in about the last 15 minutes had been ready at
    /// most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_p50_ms: Option<u64>,
    /// How long 99 of 100 of them had been ready at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_p99_ms: Option<u64>,
    /// How long half of the messages that succeeded at this instance in about the last 15 minutes were with their consumer
    /// at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_p50_ms: Option<u64>,
    /// How long 99 of 100 of them were with their consumer at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_p99_ms: Option<u64>,
    /// How its breaker stands; left out where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::BreakerState>)]
    pub breaker: Option<String>,
    /// How many messages were ready, delayed or leased over the last 15 minutes: 30 points at most, the oldest first.
    pub depth: Vec<u64>,
}

/// Some queues and their numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatsPage {
    /// When.
    pub at: Time,
    /// How far apart the samples are that rates and depths are made of.
    pub interval_ms: u64,
    /// The queues, in the order that was asked for.
    pub rows: Vec<QueueRow>,
    /// How many queues match in all.
    pub total: u64,
    /// How many of them were compared for the order; the others are behind those, by name. The same as `total` where the
    /// order is by name, or every queue is sampled.
    pub ranked_of: u64,
    /// Where the next page starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
