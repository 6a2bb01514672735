//! What a retry policy comes to.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::object;
use crate::queue::Retry;
use crate::schema;

/// Ask what a retry policy comes to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetryScheduleRequest {
    /// The policy; what is left out follows the server's defaults.
    #[serde(deserialize_with = "object::object")]
    pub retry: Retry,
    /// How many retries to show at most; 8 where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::ScheduleCount>)]
    pub count: Option<u32>,
}

/// One retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScheduledRetry {
    /// The attempt that failed before it: 1 is the first.
    pub attempt: u32,
    /// How long it waits, before chance has its part.
    pub delay_ms: u64,
    /// How long it waits at least.
    pub earliest_ms: u64,
    /// How long it waits at most.
    pub latest_ms: u64,
    /// How long after the first failure it comes, where nothing takes any time but the delays.
    pub after_ms: u64,
}

/// What a retry policy comes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RetrySchedule {
    /// The retries, in order. They end where the policy gives up, or after as many as were asked for.
    pub attempts: Vec<ScheduledRetry>,
    /// How often a message is attempted at most; left out where there is no cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// All of these delays together.
    pub total_ms: u64,
}
