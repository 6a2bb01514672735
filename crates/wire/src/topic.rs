//! Topics, and events that are published on them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::object;
use crate::schema;
use crate::time::Time;

/// An event for a topic. At most one of `body`, `body_base64` and `json` is given.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewEvent {
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
    /// String pairs that travel with it; subscriptions can ask for them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = schema::Headers)]
    pub headers: BTreeMap<String, String>,
    /// What kind of event it is; its topic, where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Class>)]
    pub r#type: Option<String>,
    /// The tenant it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::FairnessKey>)]
    pub fairness_key: Option<String>,
    /// The key that keeps it from being published twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::DedupKey>)]
    pub dedup_key: Option<String>,
}

/// Several events.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishRequest {
    /// The events, 1,000 at most.
    #[serde(deserialize_with = "object::list")]
    #[schema(max_items = 1000)]
    pub events: Vec<NewEvent>,
}

/// What became of one event of several.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct PublishResult {
    /// Its id, where it was published; that of the first one where it is a duplicate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::MessageId>)]
    pub id: Option<String>,
    /// How many subscriptions it goes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscriptions: Option<u64>,
    /// Whether all of them had it already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<bool>,
    /// Why it was not published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The same, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Whether the same may work later.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Advice>)]
    pub advice: Option<String>,
}

/// What became of several events, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PublishResults {
    /// One for each.
    pub results: Vec<PublishResult>,
}

/// What is set for the topics of a pattern. What is left out goes back to its default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SetTopicRequest {
    /// `independent`: each subscription has retries, a breaker and dead letters of its own. `sequential`: handlers run one
    /// after another, in the order of their creation. Left out, `independent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Dispatch>)]
    pub dispatch: Option<String>,
    /// For how long events can be replayed; left out or `null`, not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::TopicRetention>)]
    pub retain_ms: Option<u64>,
}

/// What is set for the topics of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopicView {
    /// For which topics. Where several patterns match a topic, the most particular one counts.
    #[schema(value_type = schema::TopicPattern)]
    pub pattern: String,
    /// `independent` or `sequential`.
    #[schema(value_type = schema::Dispatch)]
    pub dispatch: String,
    /// For how long events can be replayed; left out where they cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::TopicRetention>)]
    pub retain_ms: Option<u64>,
    /// Raised by every change; the `ETag`.
    pub version: u64,
    /// When it was first set.
    pub created_at: Time,
    /// The queue in which events wait for handlers that run one after another, where they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::QueueName>)]
    pub sequence_queue: Option<String>,
}

/// Some of what is set for topics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopicPage {
    /// What is set, by pattern.
    pub topics: Vec<TopicView>,
    /// Where the next page starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
