//! Messages: what a producer writes, and what a consumer gets.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use redrive_wire::v1;
use serde::Serialize;

use crate::error::EnqueueError;
use crate::limits::millis;

/// The lane that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lane {
    /// What the queue shares out.
    #[default]
    Shared,
    /// Only what was never tried.
    Fresh,
    /// Only what was tried before.
    Retry,
}

impl From<Lane> for v1::Lane {
    fn from(lane: Lane) -> Self {
        match lane {
            Lane::Shared => Self::Unspecified,
            Lane::Fresh => Self::Fresh,
            Lane::Retry => Self::Retry,
        }
    }
}

/// A message that a producer hands over. What is not set follows the queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewMessage {
    /// A UUID; the client makes one where there is none, so that an enqueue can be repeated.
    pub id: Option<String>,
    /// What it says.
    pub body: Bytes,
    /// What the body is, such as `application/json`.
    pub content_type: Option<String>,
    /// Headers.
    pub headers: HashMap<String, String>,
    /// What kind of message it is; consumers can ask for some kinds only.
    pub kind: String,
    /// Where it comes from.
    pub source: String,
    /// From 0 to 9, 9 first.
    pub priority: Option<u8>,
    /// Whose turn it uses up.
    pub fairness_key: String,
    /// Another message with this key is a duplicate.
    pub dedup_key: Option<String>,
    /// Whether the dedup key is held until the message is done, instead of for the queue's window.
    pub unique_until_done: bool,
    /// Not before this much time.
    pub delay: Option<Duration>,
    /// Not after this much time.
    pub ttl: Option<Duration>,
    /// How long it is leased, where the consumer does not say.
    pub lease_timeout: Option<Duration>,
    /// How often it is tried at most.
    pub max_attempts: Option<u32>,
}

impl NewMessage {
    /// A message of bytes.
    pub fn new(body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }

    /// A message of something that can be written as JSON.
    pub fn json<T: Serialize + ?Sized>(body: &T) -> Result<Self, EnqueueError> {
        let body = serde_json::to_vec(body).map_err(|error| EnqueueError::Body(error.to_string()))?;
        Ok(Self { content_type: Some("application/json".to_owned()), ..Self::new(body) })
    }

    /// Of this kind.
    #[must_use]
    pub fn kind(self, kind: impl Into<String>) -> Self {
        Self { kind: kind.into(), ..self }
    }

    /// Under this fairness key.
    #[must_use]
    pub fn fairness_key(self, key: impl Into<String>) -> Self {
        Self { fairness_key: key.into(), ..self }
    }

    /// Under this dedup key.
    #[must_use]
    pub fn dedup_key(self, key: impl Into<String>) -> Self {
        Self { dedup_key: Some(key.into()), ..self }
    }

    /// With this priority, from 0 to 9.
    #[must_use]
    pub fn priority(self, priority: u8) -> Self {
        Self { priority: Some(priority), ..self }
    }

    /// Not before this much time.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay: Some(delay), ..self }
    }

    /// With a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// How often it is tried at most.
    #[must_use]
    pub fn max_attempts(self, attempts: u32) -> Self {
        Self { max_attempts: Some(attempts), ..self }
    }
}

impl From<NewMessage> for v1::NewMessage {
    fn from(message: NewMessage) -> Self {
        Self {
            id: message.id.unwrap_or_default(),
            body: message.body,
            content_type: message.content_type.unwrap_or_default(),
            headers: message.headers,
            r#type: message.kind,
            source: message.source,
            priority: message.priority.map(u32::from),
            fairness_key: message.fairness_key,
            dedup_key: message.dedup_key.unwrap_or_default(),
            unique_until_done: message.unique_until_done,
            delay_ms: message.delay.map(millis),
            visible_at_ms: None,
            ttl_ms: message.ttl.map(millis),
            expires_at_ms: None,
            lease_timeout_ms: message.lease_timeout.map(millis),
            max_attempts: message.max_attempts,
        }
    }
}

/// A message that was handed out, with its lease. Times are milliseconds since the Unix epoch, by the broker's clock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: String,
    /// Its queue.
    pub queue: String,
    /// What it says.
    pub body: Bytes,
    /// What the body is.
    pub content_type: String,
    /// Headers; `traceparent` is the context of this attempt.
    pub headers: HashMap<String, String>,
    /// What kind of message it is.
    pub kind: String,
    /// Where it comes from.
    pub source: String,
    /// From 0 to 9.
    pub priority: u8,
    /// Whose turn it uses up.
    pub fairness_key: String,
    /// When it was enqueued.
    pub created_at_ms: u64,
    /// Since when it could be handed out.
    pub visible_at_ms: u64,
    /// How often it was tried, this time included.
    pub attempts: u32,
    /// How often it was handed out, this time included.
    pub deliveries: u32,
    /// How often it came back from the dead.
    pub redrives: u32,
    /// What settles it.
    pub receipt: String,
    /// The fencing token: larger for every later lease of the message.
    pub lease_id: u64,
    /// When the lease runs out.
    pub deadline_ms: u64,
    /// What went wrong the last time.
    pub last_error: String,
    /// Where the last attempt said to go on from.
    pub checkpoint: Bytes,
    /// When it is worth nothing any more.
    pub expires_at_ms: Option<u64>,
}

impl From<v1::Message> for Message {
    fn from(message: v1::Message) -> Self {
        Self {
            id: message.id,
            queue: message.queue,
            body: message.body,
            content_type: message.content_type,
            headers: message.headers,
            kind: message.r#type,
            source: message.source,
            priority: u8::try_from(message.priority).unwrap_or(u8::MAX),
            fairness_key: message.fairness_key,
            created_at_ms: message.created_at_ms,
            visible_at_ms: message.visible_at_ms,
            attempts: message.attempts,
            deliveries: message.deliveries,
            redrives: message.redrives,
            receipt: message.receipt,
            lease_id: message.lease_id,
            deadline_ms: message.deadline_ms,
            last_error: message.last_error,
            checkpoint: message.checkpoint,
            expires_at_ms: message.expires_at_ms,
        }
    }
}
