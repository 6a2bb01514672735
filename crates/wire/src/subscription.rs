//! Subscriptions: who gets which events, and how that went.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::maybe::Maybe;
use crate::message::MessageView;
use crate::object;
use crate::queue::{Breaker, BreakerStatus, Retry};
use crate::schema;
use crate::time::Time;

/// Headers that an event must have: each of them, with one of the values that are named for it.
pub type HeaderFilter = BTreeMap<String, Vec<String>>;

/// Where the events of a new subscription go.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewTarget {
    /// `handler`: a function in the process that embeds the broker. `webhook`: an HTTP endpoint. `queue`: a queue that others
    /// consume.
    #[schema(value_type = schema::TargetKind, required)]
    pub kind: String,
    /// Where a webhook is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::WebhookUrl>)]
    pub url: Option<String>,
    /// How events are written for a webhook: `structured`, or `binary`. Left out, `structured`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::WebhookFormat>)]
    pub format: Option<String>,
    /// For how long a webhook may do nothing but fail before it is switched off; `null` is for ever. Left out, five days.
    #[serde(skip_serializing_if = "Maybe::is_unset")]
    #[schema(value_type = Option<schema::DisableAfter>)]
    pub disable_after_ms: Maybe<u64>,
    /// The secret that a webhook is signed with, `whsec_…`; left out, the server makes one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::WebhookSecret>)]
    pub secret: Option<String>,
    /// The queue that events are put into.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::QueueName>)]
    pub queue: Option<String>,
}

impl std::fmt::Debug for NewTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewTarget").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// A new subscription. What is left out is as for most.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CreateSubscriptionRequest {
    /// Its name: 1 to 64 of `A-Z a-z 0-9 . _ -`; left out, the server makes one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::SubscriptionId>)]
    pub id: Option<String>,
    /// Of which topics.
    #[schema(value_type = schema::TopicPattern, required)]
    pub pattern: String,
    /// With which headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = schema::HeaderFilter)]
    pub filter: HeaderFilter,
    /// Where its events go.
    #[serde(deserialize_with = "object::object")]
    #[schema(required)]
    pub target: NewTarget,
    /// What is retried otherwise than others are.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object::option")]
    pub retry: Option<Retry>,
    /// How long an attempt may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::DeliveryTimeout>)]
    pub timeout_ms: Option<u64>,
    /// How many deliveries are under way at a time, at one instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::InFlight>)]
    pub max_in_flight: Option<u32>,
    /// When deliveries stop because the target is down; `null` is never.
    #[serde(skip_serializing_if = "Maybe::is_unset", deserialize_with = "object::maybe")]
    #[schema(value_type = Option<Breaker>)]
    pub breaker: Maybe<Breaker>,
    /// Brings events that its topics retained since then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_from: Option<Time>,
}

/// What is set of an endpoint from now on. Its secrets stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetUpdate {
    /// Where a webhook is sent.
    #[schema(value_type = schema::WebhookUrl)]
    pub url: String,
    /// How events are written for it: `structured`, or `binary`. Left out, `structured`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::WebhookFormat>)]
    pub format: Option<String>,
    /// For how long it may do nothing but fail before it is switched off; `null` is for ever. Left out, five days.
    #[serde(default, skip_serializing_if = "Maybe::is_unset")]
    #[schema(value_type = Option<schema::DisableAfter>)]
    pub disable_after_ms: Maybe<u64>,
}

/// What is set of a subscription from now on, as a whole. What is left out goes back to what most have.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UpdateSubscriptionRequest {
    /// Of which topics.
    #[schema(value_type = schema::TopicPattern, required)]
    pub pattern: String,
    /// With which headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = schema::HeaderFilter)]
    pub filter: HeaderFilter,
    /// What is set of its endpoint; left out, that stays as it is.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object::option")]
    pub target: Option<TargetUpdate>,
    /// What is retried otherwise than others are.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object::option")]
    pub retry: Option<Retry>,
    /// How long an attempt may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::DeliveryTimeout>)]
    pub timeout_ms: Option<u64>,
    /// How many deliveries are under way at a time, at one instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::InFlight>)]
    pub max_in_flight: Option<u32>,
    /// When deliveries stop because the target is down; `null` is never.
    #[serde(skip_serializing_if = "Maybe::is_unset", deserialize_with = "object::maybe")]
    #[schema(value_type = Option<Breaker>)]
    pub breaker: Maybe<Breaker>,
}

/// Where the events of a subscription go.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct TargetView {
    /// `handler`, `webhook` or `queue`.
    #[schema(value_type = schema::TargetKind)]
    pub kind: String,
    /// Where a webhook is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// How events are written for a webhook: `structured` or `binary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::WebhookFormat>)]
    pub format: Option<String>,
    /// For how long a webhook may do nothing but fail before it is switched off; left out where that is for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_after_ms: Option<u64>,
    /// How many secrets a webhook is signed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<u32>,
    /// When the last of the secrets that were replaced ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_secrets_until: Option<Time>,
    /// The queue that events are put into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::QueueName>)]
    pub queue: Option<String>,
}

/// What is in force for the deliveries of a subscription, every setting of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeliverySettings {
    /// When what failed is retried.
    pub retry: Retry,
    /// How long an attempt may take.
    pub timeout_ms: u64,
    /// How many deliveries are under way at a time, at one instance.
    pub max_in_flight: u32,
    /// When deliveries stop because the target is down; left out where they never do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker: Option<Breaker>,
}

/// Since when, and why, a subscription is switched off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DisabledView {
    /// Since when.
    pub at: Time,
    /// `gone`: its endpoint answered 410. `failing`: it did nothing but fail for too long. `operator`: a person did it.
    #[schema(value_type = schema::WhyDisabled)]
    pub why: String,
}

/// A subscription.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SubscriptionView {
    /// Its name.
    #[schema(value_type = schema::SubscriptionId)]
    pub id: String,
    /// Of which topics.
    #[schema(value_type = schema::TopicPattern)]
    pub pattern: String,
    /// With which headers.
    #[serde(default)]
    #[schema(value_type = schema::HeaderFilter)]
    pub filter: HeaderFilter,
    /// Where its events go.
    pub target: TargetView,
    /// What was set of retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// What was set of how long an attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What was set of how many deliveries are under way at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_in_flight: Option<u32>,
    /// What was set of its breaker; `null` is none.
    #[serde(default, skip_serializing_if = "Maybe::is_unset")]
    #[schema(value_type = Option<Breaker>)]
    pub breaker: Maybe<Breaker>,
    /// What is in force; left out where the target is a queue, which has settings of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<DeliverySettings>,
    /// `active`: events come and go on. `paused`: they come, and wait. `disabled`: neither; what waited still does.
    #[schema(value_type = schema::SubscriptionState)]
    pub state: String,
    /// Since when, and why, it is switched off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<DisabledView>,
    /// Since when its endpoint does nothing but fail, where that has lasted for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Time>,
    /// When it was created.
    pub created_at: Time,
    /// Its place among all that were ever created: handlers of one event run in this order.
    pub order: u64,
    /// Raised by every change; the `ETag`.
    pub version: u64,
    /// The queue in which its events wait, retry and die.
    #[schema(value_type = schema::QueueName)]
    pub queue: String,
    /// Its breaker as it stands; left out in lists, and where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker_status: Option<BreakerStatus>,
}

/// A subscription, with the secret that was made for it, which is shown this once.
#[derive(Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NewSubscriptionView {
    /// The subscription.
    pub subscription: SubscriptionView,
    /// The secret that its webhooks are signed with; left out where the caller named it. It cannot be had again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

impl std::fmt::Debug for NewSubscriptionView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("NewSubscriptionView");
        shown.field("subscription", &self.subscription).finish_non_exhaustive()
    }
}

/// Some subscriptions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SubscriptionPage {
    /// The subscriptions, by name.
    pub subscriptions: Vec<SubscriptionView>,
    /// Where the next page starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Another secret for a webhook.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RotateSecretRequest {
    /// The secret, `whsec_…`; left out, the server makes one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::WebhookSecret>)]
    pub secret: Option<String>,
    /// For how long the secrets before it sign as well; left out, a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::OverlapMs>)]
    pub overlap_ms: Option<u64>,
}

impl std::fmt::Debug for RotateSecretRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RotateSecretRequest").field("overlap_ms", &self.overlap_ms).finish_non_exhaustive()
    }
}

/// Bring events of the past to a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayRequest {
    /// Those that were published at this time or later, as far as their topics retained them.
    pub from: Time,
}

/// Bring one event to a subscription once more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResendRequest {
    /// The event.
    #[schema(value_type = schema::MessageId)]
    pub event: String,
}

/// An event that comes once more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Resent {
    /// The event.
    #[schema(value_type = schema::MessageId)]
    pub event: String,
    /// By which way: it was dead and is `redriven`, it waited and is `retried_now`, or it was over and is `enqueued` again.
    #[schema(value_type = schema::HowResent)]
    pub how: String,
}

/// A replay that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReplayStarted {
    /// Its name.
    #[schema(value_type = schema::MessageId)]
    pub id: String,
}

/// A replay that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReplayView {
    /// Its name.
    #[schema(value_type = schema::MessageId)]
    pub id: String,
    /// Since when events are brought.
    pub from: Time,
    /// When it was asked for.
    pub started_at: Time,
    /// How many events were brought.
    pub replayed: u64,
}

/// The replays of a subscription that are under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Replays {
    /// The replays.
    pub replays: Vec<ReplayView>,
}

/// A header of a request or an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeaderView {
    /// Its name.
    pub name: String,
    /// What it says; `…` where that is a secret.
    pub value: String,
}

/// What was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SentView {
    /// The headers, without the signature.
    pub headers: Vec<HeaderView>,
    /// The start of the body, as text.
    pub body: String,
    /// How long the body was.
    pub body_bytes: u64,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AnswerView {
    /// The status.
    pub status: u16,
    /// The first headers.
    pub headers: Vec<HeaderView>,
    /// The start of the body, as text.
    pub body: String,
}

/// One attempt to bring an event to its target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveryAttempt {
    /// Which event.
    #[schema(value_type = schema::MessageId)]
    pub event: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// When it began.
    pub at: Time,
    /// How long it took.
    pub took_ms: u64,
    /// Whether the target has it.
    pub delivered: bool,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What was sent, where it was a webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<SentView>,
    /// What was answered, where anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<AnswerView>,
}

/// The last attempts of a subscription at this instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveryAttempts {
    /// The attempts, the newest first.
    pub attempts: Vec<DeliveryAttempt>,
}

/// An event that is dead for a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadDeliveryView {
    /// Why it is dead for this subscription; `not_reached` where it died before its turn came.
    #[schema(value_type = schema::DeadReason)]
    pub reason: String,
    /// The message, in the queue where it died.
    pub message: MessageView,
}

/// Some events that are dead for a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadDeliveryPage {
    /// The events.
    pub dead: Vec<DeadDeliveryView>,
    /// Where the next page starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A breaker, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BreakerView {
    /// The queue that it stops.
    #[schema(value_type = schema::QueueName)]
    pub queue: String,
    /// The subscription whose queue that is, where it is one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::SubscriptionId>)]
    pub subscription: Option<String>,
    /// How it stands.
    pub status: BreakerStatus,
}

/// Some breakers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BreakerPage {
    /// The breakers, by queue.
    pub breakers: Vec<BreakerView>,
    /// Where the next page starts. A page may be short, or empty, and still have a next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
