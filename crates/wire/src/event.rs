//! Events.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Something happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// `enqueue`, `lease`, `ack`, `nack`, `requeue`, `move_to_dlq`, `breaker`, `queue` or `subscription`.
    pub r#type: String,
    /// When, in milliseconds since the Unix epoch.
    pub timestamp: u64,
    /// What.
    pub payload: EventPayload,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventPayload {
    /// To which queue. Left out for who shows no API key, where one is needed and reading is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// How many messages.
    pub count: u64,
    /// How many messages died in the same step.
    pub dlq_count: u64,
    /// `producer`, `consumer`, `scheduler` or `operator`.
    pub triggered_by: String,
    /// What was done to the queue, for `queue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// What was done to the subscription, for `subscription`: `created`, `updated`, `deleted`, `paused`, `resumed`,
    /// `disabled`, `enabled`, `rotated` or `replayed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub act: Option<String>,
    /// Which subscription it is about, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription: Option<String>,
    /// The state before, for `breaker`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The state after, for `breaker`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Why, for `breaker`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
