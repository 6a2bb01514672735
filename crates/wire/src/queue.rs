//! Queues.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::maybe::Maybe;
use crate::object;
use crate::schema;
use crate::time::Time;

/// When to retry what failed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// How often a message may be attempted; `null` is no limit.
    #[serde(skip_serializing_if = "Maybe::is_unset")]
    #[schema(value_type = Option<schema::Positive>)]
    pub max_attempts: Maybe<u32>,
    /// The delay after the first failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Delay>)]
    pub base_delay_ms: Option<u64>,
    /// By how much the delay grows from one attempt to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Multiplier>)]
    pub multiplier: Option<f64>,
    /// The longest delay; `null` is no limit.
    #[serde(skip_serializing_if = "Maybe::is_unset")]
    #[schema(value_type = Option<schema::Delay>)]
    pub max_delay_ms: Maybe<u64>,
    /// `none`, `full`, or a share such as `0.1` by which the delay varies up and down.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Jitter>)]
    pub jitter: Option<String>,
}

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Breaker {
    /// How long an outcome counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::BreakerWindow>)]
    pub window_ms: Option<u64>,
    /// Fewer messages than this in the window never open it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::BreakerMessages>)]
    pub min_messages: Option<u32>,
    /// It opens when more than this share of the messages failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::BreakerShare>)]
    pub failure_share: Option<f64>,
    /// How long nothing is handed out before a probe is tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::BreakerOpen>)]
    pub open_for_ms: Option<u64>,
    /// How long a reserved probe may wait for its lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::BreakerWindow>)]
    pub probe_timeout_ms: Option<u64>,
}

/// How long, and how many, messages are kept; whichever is less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Older ones go.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::RetentionAge>)]
    pub age_ms: Option<u64>,
    /// The oldest beyond this many go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// What is set of a queue. What is left out follows the server's defaults.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QueueConfig {
    /// How long a lease lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::LeaseTime>)]
    pub lease_timeout_ms: Option<u64>,
    /// How long a lease may last, all extensions together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::LeaseTime>)]
    pub max_lease_ms: Option<u64>,
    /// How often a message may be handed out, whoever is charged.
    #[serde(skip_serializing_if = "Maybe::is_unset")]
    #[schema(value_type = Option<schema::Positive>)]
    pub max_deliveries: Maybe<u32>,
    /// When to retry what failed.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object::option")]
    pub retry: Option<Retry>,
    /// What retries get of what is handed out while there is fresh work, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Share>)]
    pub retry_share: Option<f64>,
    /// `shared`, or `separate`: retries go only to consumers that ask for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::RetryLane>)]
    pub retry_lane: Option<String>,
    /// How many leased messages may be retries.
    #[serde(skip_serializing_if = "Maybe::is_unset")]
    #[schema(value_type = Option<schema::Positive>)]
    pub max_retries_in_flight: Maybe<u32>,
    /// Whether an overdue lease waits for the backoff, instead of being ready at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overdue_backoff: Option<bool>,
    /// Whether a breaker stops the queue during an outage, and how; `null` is no breaker.
    #[serde(skip_serializing_if = "Maybe::is_unset", deserialize_with = "object::maybe")]
    #[schema(value_type = Option<Breaker>)]
    pub breaker: Maybe<Breaker>,
    /// Where dead messages are moved.
    #[serde(skip_serializing_if = "Maybe::is_unset")]
    #[schema(value_type = Option<schema::QueueName>)]
    pub dead_letter_to: Maybe<String>,
    /// How long acked messages are kept.
    #[serde(skip_serializing_if = "Maybe::is_unset", deserialize_with = "object::maybe")]
    #[schema(value_type = Option<Retention>)]
    pub retain_done: Maybe<Retention>,
    /// How long dead messages are kept.
    #[serde(skip_serializing_if = "Maybe::is_unset", deserialize_with = "object::maybe")]
    #[schema(value_type = Option<Retention>)]
    pub retain_dead: Maybe<Retention>,
    /// How long a dedup key keeps a second message out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::DedupWindow>)]
    pub dedup_window_ms: Option<u64>,
    /// How many messages may wait before enqueues are refused.
    #[serde(skip_serializing_if = "Maybe::is_unset")]
    #[schema(value_type = Option<schema::MaxWaiting>)]
    pub max_waiting: Maybe<u64>,
    /// How many messages each fairness key is served in its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Weights>)]
    pub weights: Option<KeyWeights>,
}

/// Fairness keys and how many messages each is served in its turn; a key that is not named has weight 1.
pub type KeyWeights = BTreeMap<String, u32>;

/// A new queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateQueueRequest {
    /// Its name: 1 to 80 of `A-Z a-z 0-9 . _ -`.
    #[schema(value_type = schema::QueueName)]
    pub name: String,
    /// What is set.
    #[serde(default, deserialize_with = "object::object")]
    pub config: QueueConfig,
}

/// Another configuration, as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateQueueRequest {
    /// What is set.
    #[serde(deserialize_with = "object::object")]
    pub config: QueueConfig,
}

/// A pause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PauseView {
    /// The fairness key that is paused; left out where the whole queue is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::FairnessKey>)]
    pub key: Option<String>,
    /// When it ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

/// A queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueView {
    /// Its name.
    #[schema(value_type = schema::QueueName)]
    pub name: String,
    /// When it was created.
    pub created_at: Time,
    /// Raised by every change of configuration; the `ETag`.
    pub version: u64,
    /// What is set.
    pub config: QueueConfig,
    /// The settings in force, every one of them.
    pub settings: QueueConfig,
    /// Which of them were set on the queue; the others are the server's defaults.
    pub set: Vec<String>,
    /// Which of the others the server's configuration says otherwise than what is built in.
    #[serde(default)]
    #[schema(required)]
    pub configured: Vec<String>,
    /// Whether the whole queue is paused now.
    pub paused: bool,
    /// Every pause that holds.
    pub pauses: Vec<PauseView>,
}

/// Some queues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueuePage {
    /// The queues, by name.
    pub queues: Vec<QueueView>,
    /// Where the next page starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A pause.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PauseRequest {
    /// One fairness key; left out, the whole queue.
    #[schema(value_type = Option<schema::FairnessKey>)]
    pub key: Option<String>,
    /// Until this time.
    pub until: Option<Time>,
    /// For so long.
    pub for_ms: Option<u64>,
}

/// The end of a pause.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResumeRequest {
    /// One fairness key; left out, the whole queue.
    #[schema(value_type = Option<schema::FairnessKey>)]
    pub key: Option<String>,
}

/// How many messages are in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct StateCounts {
    /// Waiting for their time.
    pub delayed: u64,
    /// Waiting for a consumer.
    pub ready: u64,
    /// With a consumer.
    pub leased: u64,
    /// Given up.
    pub dead: u64,
    /// Succeeded, and kept.
    pub done: u64,
}

/// How the retries of one message type went since the server started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RetryStats {
    /// The type.
    #[schema(value_type = schema::Class)]
    pub r#type: String,
    /// Attempts that failed and were made again.
    pub retries: u64,
    /// Messages that succeeded after a retry.
    pub succeeded_after_retry: u64,
    /// Messages that died.
    pub died: u64,
    /// Of the messages that were retried and came to an end, the share that succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub succeeded_share: Option<f64>,
    /// And the share that died.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub died_share: Option<f64>,
}

/// How retries went, by message type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TypeStats {
    /// One for each type that failed or succeeded after a failure since the server started.
    pub types: Vec<RetryStats>,
}

/// A queue at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueStats {
    /// Its name.
    #[schema(value_type = schema::QueueName)]
    pub queue: String,
    /// When.
    pub at: Time,
    /// How many messages are in each state.
    pub states: StateCounts,
    /// How many leases have run out and were not ended yet.
    pub overdue: u64,
    /// How many leased messages are retries.
    pub retries_in_flight: u64,
    /// How long the oldest ready message has been ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_ready_age_ms: Option<u64>,
    /// How many dedup keys are held.
    pub dedup_keys: u64,
    /// How often each transition happened since the queue was created.
    pub totals: BTreeMap<String, u64>,
}

/// A queue at one moment, and what happened in it since the moment before. Times are those of what this instance handed out and
/// saw succeed, to within an eighth; they are left out where there was nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HistorySample {
    /// When.
    pub at: Time,
    /// How many messages were in each state.
    pub states: StateCounts,
    /// Messages that came in.
    pub enqueued: u64,
    /// Messages that were handed out.
    pub leased: u64,
    /// Messages that succeeded.
    pub acked: u64,
    /// Attempts that failed, those whose lease ran out included.
    pub failed: u64,
    /// Leases that ran out.
    #[serde(default)]
    #[schema(required)]
    pub expired: u64,
    /// Messages that died.
    pub died: u64,
    /// How long half of the messages that were handed out had been ready at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_p50_ms: Option<u64>,
    /// How long 99 of 100 of them had been ready at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_p99_ms: Option<u64>,
    /// How long half of the messages that succeeded were with their consumer at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_p50_ms: Option<u64>,
    /// How long 99 of 100 of them were with their consumer at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_p99_ms: Option<u64>,
}

/// How full a queue was and how fast it went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct History {
    /// How far apart the samples are.
    pub interval_ms: u64,
    /// The samples, the oldest first.
    pub samples: Vec<HistorySample>,
}

/// The breaker of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BreakerStatus {
    /// `closed`, `open` or `half_open`.
    #[schema(value_type = schema::BreakerState)]
    pub state: String,
    /// Until when nothing is handed out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_until: Option<Time>,
    /// The message that is probed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::MessageId>)]
    pub probe: Option<String>,
    /// How many messages of the window have an outcome.
    pub messages: u32,
    /// How many of them failed.
    pub failed: u32,
}
