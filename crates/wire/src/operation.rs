//! Dead letters, and work on many messages.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::message::FilterBody;
use crate::object;
use crate::schema;
use crate::time::Time;

/// Dead messages whose errors are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailureGroupView {
    /// What they have in common; a filter takes it.
    #[schema(value_type = schema::Fingerprint)]
    pub fingerprint: String,
    /// The last error of the one that died last.
    pub sample: String,
    /// How many.
    pub messages: u64,
    /// When the first of them died.
    pub first: Time,
    /// When the last of them died.
    pub last: Time,
    /// How many died in each of the last 30 minutes at this instance, the oldest first: 30 numbers.
    #[serde(default)]
    #[schema(required)]
    pub deaths: Vec<u64>,
}

/// Dead messages of one queue whose errors are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailureGroupOfQueue {
    /// The queue.
    #[schema(value_type = schema::QueueName)]
    pub queue: String,
    /// The subscription whose queue it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::SubscriptionId>)]
    pub subscription: Option<String>,
    /// What they have in common; a filter takes it.
    #[schema(value_type = schema::Fingerprint)]
    pub fingerprint: String,
    /// The last error of the one that died last.
    pub sample: String,
    /// How many.
    pub messages: u64,
    /// When the first of them died.
    pub first: Time,
    /// When the last of them died.
    pub last: Time,
    /// How many died in each of the last 30 minutes at this instance, the oldest first: 30 numbers.
    pub deaths: Vec<u64>,
}

/// Groups of dead messages of all queues that the caller may inspect, the largest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AllFailureGroups {
    /// The groups.
    pub groups: Vec<FailureGroupOfQueue>,
    /// Whether every queue was looked at and no group was left out. The first 1,000 queues by name are looked at.
    pub complete: bool,
}

/// Groups of dead messages, the largest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailureGroups {
    /// The groups.
    pub groups: Vec<FailureGroupView>,
}

/// Bring dead messages back.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RedriveRequest {
    /// Which.
    #[serde(deserialize_with = "object::object")]
    pub filter: FilterBody,
    /// Count them and change nothing.
    pub dry_run: bool,
    /// How many messages a second at most.
    #[schema(value_type = Option<schema::Positive>)]
    pub rate: Option<u32>,
    /// Who asks.
    #[schema(value_type = schema::Note)]
    pub by: String,
    /// Why.
    #[schema(value_type = schema::Note)]
    pub reason: String,
}

/// Discard messages.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DiscardRequest {
    /// Which.
    #[serde(deserialize_with = "object::object")]
    pub filter: FilterBody,
    /// Count them and change nothing.
    pub dry_run: bool,
    /// How many messages a second at most.
    #[schema(value_type = Option<schema::Positive>)]
    pub rate: Option<u32>,
    /// Leased ones, too, which fences their consumers.
    pub force: bool,
}

/// Discard everything in a queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PurgeRequest {
    /// Count them and change nothing.
    pub dry_run: bool,
    /// Leased ones, too, which fences their consumers.
    pub force: bool,
}

/// Move messages to another queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MoveManyRequest {
    /// Which.
    #[serde(deserialize_with = "object::object")]
    pub filter: FilterBody,
    /// Where to.
    #[schema(value_type = schema::QueueName, required)]
    pub queue: String,
    /// Count them and change nothing.
    pub dry_run: bool,
    /// How many messages a second at most.
    #[schema(value_type = Option<schema::Positive>)]
    pub rate: Option<u32>,
}

/// How many messages a dry run found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Matched {
    /// How many.
    pub matched: u64,
}

/// Work on many messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperationView {
    /// Its id.
    #[schema(value_type = schema::OperationId)]
    pub id: String,
    /// `redrive`, `discard` or `move`.
    #[schema(value_type = schema::OperationKind)]
    pub kind: String,
    /// In which queue.
    #[schema(value_type = schema::QueueName)]
    pub queue: String,
    /// Which messages: the filter that is carried out. Left out for who may not read the messages of the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<FilterBody>,
    /// The last message that it is about, in the order of ids: the last that matched when it was started. Operations that an
    /// older version started have none, and go on to the end of the queue. Left out for who may not read the messages of the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::MessageId>)]
    pub until: Option<String>,
    /// Where messages are moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::QueueName>)]
    pub target: Option<String>,
    /// `running`, `paused`, `done`, `cancelled` or `failed`.
    #[schema(value_type = schema::OperationState)]
    pub state: String,
    /// How many messages matched when it was started.
    pub total: u64,
    /// How many were looked at.
    pub matched: u64,
    /// How many were changed.
    pub applied: u64,
    /// How many were left as they were.
    pub refused: u64,
    /// How many messages a second at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Positive>)]
    pub rate: Option<u32>,
    /// Who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Note>)]
    pub by: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Note>)]
    pub reason: Option<String>,
    /// When it was started.
    pub started_at: Time,
    /// When it last came further.
    pub updated_at: Time,
    /// Why it cannot go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Some operations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperationPage {
    /// The operations, the oldest first.
    pub operations: Vec<OperationView>,
    /// Where the next page starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
