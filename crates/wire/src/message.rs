//! Messages.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::object;
use crate::schema;
use crate::time::Time;

/// A message for a queue. At most one of `body`, `body_base64` and `json` is given.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewMessage {
    /// Its id, a UUID; left out, the server makes one. The same id again is answered as a duplicate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::MessageId>)]
    pub id: Option<String>,
    /// The body as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The body as base64, for bytes that are no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Base64>)]
    pub body_base64: Option<String>,
    /// The body as JSON; its bytes are kept as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub json: Option<Box<RawValue>>,
    /// What the body is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::ContentType>)]
    pub content_type: Option<String>,
    /// String pairs that travel with it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = schema::Headers)]
    pub headers: BTreeMap<String, String>,
    /// What happened; consumers can ask for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Class>)]
    pub r#type: Option<String>,
    /// Where it came from; consumers can ask for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Class>)]
    pub source: Option<String>,
    /// 0 to 9, 9 first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Priority>)]
    pub priority: Option<u8>,
    /// The tenant it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::FairnessKey>)]
    pub fairness_key: Option<String>,
    /// The key that keeps it from being enqueued twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::DedupKey>)]
    pub dedup_key: Option<String>,
    /// `window`, or `until_done`: the key is held while the message is delayed, ready or leased.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Uniqueness>)]
    pub unique: Option<String>,
    /// Not before this much time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Delay>)]
    pub delay_ms: Option<u64>,
    /// Not before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visible_at: Option<Time>,
    /// Not after this much time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Delay>)]
    pub ttl_ms: Option<u64>,
    /// Not after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// Overrides the queue's lease time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::LeaseTime>)]
    pub lease_timeout_ms: Option<u64>,
    /// Overrides the queue's cap on attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Positive>)]
    pub max_attempts: Option<u32>,
}

/// Several messages.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnqueueBatchRequest {
    /// The messages, 1,000 and 16 MiB at most.
    #[serde(deserialize_with = "object::list")]
    #[schema(max_items = 1000)]
    pub messages: Vec<NewMessage>,
    /// Whether one refusal undoes all.
    #[serde(default)]
    pub all_or_nothing: bool,
}

/// A message that is in its queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Enqueued {
    /// Its id; that of the first one where it is a duplicate.
    #[schema(value_type = schema::MessageId)]
    pub id: String,
    /// Whether the queue had it already; then nothing was changed.
    pub duplicate: bool,
    /// From when on it may be leased; left out for a duplicate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visible_at: Option<Time>,
}

/// What became of one message of several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnqueueResult {
    /// Its id, where it is in its queue; that of the first one where it is a duplicate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::MessageId>)]
    pub id: Option<String>,
    /// Whether the queue had it already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<bool>,
    /// From when on it may be leased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visible_at: Option<Time>,
    /// Why it is not in its queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The same, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Whether the same may work later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Advice>)]
    pub advice: Option<String>,
}

/// What became of several messages, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnqueueResults {
    /// One for each.
    pub results: Vec<EnqueueResult>,
}

/// What became of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Imported {
    /// Messages that came in.
    pub imported: u64,
    /// Messages that were there already.
    pub duplicates: u64,
    /// Messages that were refused.
    pub refused: u64,
    /// The first refusals: the line, and why.
    pub problems: Vec<String>,
}

/// One attempt that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttemptView {
    /// Its number.
    pub attempt: u32,
    /// Who had the message.
    #[schema(value_type = schema::ConsumerName)]
    pub consumer: String,
    /// When the lease was taken.
    pub leased_at: Time,
    /// When it ended.
    pub ended_at: Time,
    /// `nack`, `expire` or `bury`.
    #[schema(value_type = schema::Cause)]
    pub cause: String,
    /// What went wrong.
    pub error: String,
    /// The delay that was chosen; left out where it died.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Which rule chose it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::DelayRule>)]
    pub delay_rule: Option<String>,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MessageView {
    /// Its id.
    #[schema(value_type = schema::MessageId)]
    pub id: String,
    /// The queue it is in.
    #[schema(value_type = schema::QueueName)]
    pub queue: String,
    /// `delayed`, `ready`, `leased`, `dead` or `done`.
    #[schema(value_type = schema::State)]
    pub state: String,
    /// The body, where it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The body as base64, where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Base64>)]
    pub body_base64: Option<String>,
    /// How long the body is.
    pub body_bytes: u64,
    /// What the body is.
    #[schema(value_type = schema::ContentType)]
    pub content_type: String,
    /// String pairs that travel with it.
    #[schema(value_type = schema::Headers)]
    pub headers: BTreeMap<String, String>,
    /// What happened.
    #[schema(value_type = schema::Class)]
    pub r#type: String,
    /// Where it came from.
    #[schema(value_type = schema::Class)]
    pub source: String,
    /// 0 to 9, 9 first.
    #[schema(value_type = schema::Priority)]
    pub priority: u8,
    /// The tenant it belongs to.
    #[schema(value_type = schema::FairnessKey)]
    pub fairness_key: String,
    /// The key that keeps it from being enqueued twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::DedupKey>)]
    pub dedup_key: Option<String>,
    /// When it was enqueued.
    pub created_at: Time,
    /// From when on it may be leased.
    pub visible_at: Time,
    /// When it is too old to be of use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// Charged deliveries since it was enqueued or last redriven.
    pub attempts: u32,
    /// All deliveries, ever.
    pub deliveries: u32,
    /// How often it was brought back from the dead.
    pub redrives: u32,
    /// Its own lease time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::LeaseTime>)]
    pub lease_timeout_ms: Option<u64>,
    /// Its own cap on attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Positive>)]
    pub max_attempts: Option<u32>,
    /// Who has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<crate::lease::LeaseView>,
    /// The last error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The last attempts that did not succeed.
    pub failures: Vec<AttemptView>,
    /// What a consumer wrote down to go on from, as base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Checkpoint>)]
    pub checkpoint_base64: Option<String>,
    /// Why it is dead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::DeadReason>)]
    pub dead_reason: Option<String>,
    /// When it died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_at: Option<Time>,
    /// The group of failures that its last error belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Fingerprint>)]
    pub fingerprint: Option<String>,
    /// The queue it was moved from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::QueueName>)]
    pub origin_queue: Option<String>,
    /// Who brought it back last, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Some messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MessagePage {
    /// The messages.
    pub messages: Vec<MessageView>,
    /// Where the next page starts. A page may be short, or empty, and still have a next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Which messages are meant: all that match every part.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FilterBody {
    /// In one of these states.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = schema::States)]
    pub states: Vec<String>,
    /// One of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = schema::MessageIds)]
    pub ids: Vec<String>,
    /// Of one of these types.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = schema::Classes)]
    pub types: Vec<String>,
    /// From one of these sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = schema::Classes)]
    pub sources: Vec<String>,
    /// Of one of these fairness keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = schema::FairnessKeys)]
    pub keys: Vec<String>,
    /// Leased by one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = schema::ConsumerNames)]
    pub consumers: Vec<String>,
    /// Dead for one of these reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = schema::DeadReasons)]
    pub reasons: Vec<String>,
    /// Dead with this fingerprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Fingerprint>)]
    pub fingerprint: Option<String>,
    /// With at least so many attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Count>)]
    pub attempts_min: Option<u32>,
    /// With at most so many attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Count>)]
    pub attempts_max: Option<u32>,
    /// Enqueued at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_after: Option<Time>,
    /// Enqueued at this time or earlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_before: Option<Time>,
    /// With this text somewhere in the last error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::ErrorPart>)]
    pub error: Option<String>,
}

/// Another time, or another priority.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RescheduleRequest {
    /// Not before this much time; 0 is now.
    #[schema(value_type = Option<schema::Delay>)]
    pub delay_ms: Option<u64>,
    /// Not before this time.
    pub visible_at: Option<Time>,
    /// 0 to 9, 9 first.
    #[schema(value_type = Option<schema::Priority>)]
    pub priority: Option<u8>,
}

/// Another queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveRequest {
    /// Where to.
    #[schema(value_type = schema::QueueName)]
    pub queue: String,
}

/// One thing that keeps a message from running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ObstacleView {
    /// `leased`, `dead`, `done`, `not_due`, `queue_paused`, `key_paused`, `breaker_open`, `breaker_half_open`,
    /// `retry_cap`, `separate_lane` or `behind`.
    pub kind: String,
    /// The same as a sentence.
    pub detail: String,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// How many messages are in front, or how many retries may be in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// Why a message is not running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhyView {
    /// The state of the message.
    #[schema(value_type = schema::State)]
    pub state: String,
    /// What keeps it; nothing where the next consumer that asks gets it.
    pub obstacles: Vec<ObstacleView>,
    /// When it can run at the earliest, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest: Option<Time>,
}
