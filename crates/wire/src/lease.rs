//! Leases: taking them and settling them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::message::MessageView;
use crate::object;
use crate::schema;
use crate::time::Time;

/// A consumer asks for work.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LeaseRequest {
    /// How many messages at most; 1 where it is left out.
    #[schema(value_type = Option<schema::Limit>)]
    pub limit: Option<u32>,
    /// Who asks.
    #[schema(value_type = Option<schema::ConsumerName>)]
    pub consumer: Option<String>,
    /// For how long; left out, message and queue decide.
    #[schema(value_type = Option<schema::LeaseTime>)]
    pub lease_ms: Option<u64>,
    /// How long to wait where nothing is ready.
    pub wait_ms: Option<u64>,
    /// `fresh` or `retry`; left out, what the queue shares out.
    #[schema(value_type = Option<schema::Lane>)]
    pub lane: Option<String>,
    /// Of these types only.
    #[schema(value_type = schema::Classes)]
    pub types: Vec<String>,
    /// From these sources only.
    #[schema(value_type = schema::Classes)]
    pub sources: Vec<String>,
}

/// Who has a message, and until when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseView {
    /// The fencing token: larger for every later lease of the message.
    #[schema(value_type = schema::LeaseId)]
    pub lease_id: String,
    /// Who has it.
    #[schema(value_type = schema::ConsumerName)]
    pub consumer: String,
    /// Since when.
    pub leased_at: Time,
    /// Until when.
    pub deadline: Time,
    /// For how long it has been leased.
    pub age_ms: u64,
    /// Whether the deadline has passed and nothing has ended the lease yet.
    pub overdue: bool,
}

/// A message that was handed out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveredMessage {
    /// What settles it.
    pub receipt: String,
    /// The message.
    #[serde(flatten)]
    pub message: MessageView,
}

/// What was handed out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseResponse {
    /// The messages; none where nothing was ready in time.
    pub messages: Vec<DeliveredMessage>,
}

/// Messages that are with consumers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Leases {
    /// The messages, each with its lease.
    pub leases: Vec<MessageView>,
    /// Where the next page starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A message that is with a consumer, without what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseRow {
    /// Its queue.
    #[schema(value_type = schema::QueueName)]
    pub queue: String,
    /// Its id.
    #[schema(value_type = schema::MessageId)]
    pub id: String,
    /// What happened.
    #[schema(value_type = schema::Class)]
    pub r#type: String,
    /// The tenant it belongs to.
    #[schema(value_type = schema::FairnessKey)]
    pub fairness_key: String,
    /// Charged deliveries, this one included.
    pub attempts: u32,
    /// How many there may be, by the message or else by its queue; left out where there is no cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Positive>)]
    pub max_attempts: Option<u32>,
    /// All deliveries, ever.
    pub deliveries: u32,
    /// Who has it, and until when.
    pub lease: LeaseView,
}

/// Some leases of all queues that the caller may inspect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeasePage {
    /// When.
    pub at: Time,
    /// The leases, by queue and by message.
    pub leases: Vec<LeaseRow>,
    /// Where the next page starts. A page may be short, or empty, and still have a next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Several of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch<T> {
    /// The items, 1,000 at most.
    #[serde(deserialize_with = "object::list", bound(deserialize = "T: Deserialize<'de>"))]
    #[schema(max_items = 1000)]
    pub items: Vec<T>,
}

/// The work is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AckRequest {
    /// Of which lease.
    pub receipt: String,
}

/// The work failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NackRequest {
    /// Of which lease.
    pub receipt: String,
    /// What went wrong; what is longer than 1 KiB is cut.
    #[serde(default)]
    pub error: String,
    /// Not before this much time; the queue's policy may say longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Delay>)]
    pub delay_ms: Option<u64>,
    /// Whether the delay is exact, whatever the policy says.
    #[serde(default)]
    pub exact: bool,
    /// Where to go on from, as base64, 4 KiB at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Checkpoint>)]
    pub checkpoint_base64: Option<String>,
}

/// The work takes longer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtendRequest {
    /// Which lease.
    pub receipt: String,
    /// For how long from now; left out, as long as the queue's leases are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Extension>)]
    pub lease_ms: Option<u64>,
    /// Where to go on from, as base64, 4 KiB at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Checkpoint>)]
    pub checkpoint_base64: Option<String>,
}

/// The message goes back unharmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequest {
    /// Which lease.
    pub receipt: String,
    /// Not before this much time; left out, it gets its old place back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Delay>)]
    pub delay_ms: Option<u64>,
}

/// The work must never be tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BuryRequest {
    /// Which lease.
    pub receipt: String,
    /// Why; what is longer than 1 KiB is cut.
    #[serde(default)]
    pub error: String,
}

/// An operator gives a consumer more time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OperatorExtendRequest {
    /// For how long from now; left out, as long as the queue's leases are.
    #[schema(value_type = Option<schema::Extension>)]
    pub lease_ms: Option<u64>,
    /// Only where the message is under this lease (`LEASE_LOST` otherwise); left out, whichever it is under.
    #[schema(value_type = Option<schema::LeaseId>)]
    pub lease_id: Option<String>,
}

/// An operator takes a message back unharmed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OperatorReleaseRequest {
    /// Not before this much time.
    #[schema(value_type = Option<schema::Delay>)]
    pub delay_ms: Option<u64>,
    /// Only where the message is under this lease (`LEASE_LOST` otherwise); left out, whichever it is under.
    #[schema(value_type = Option<schema::LeaseId>)]
    pub lease_id: Option<String>,
}

/// What a failure led to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Nacked {
    /// `delayed`, `ready` or `dead`.
    #[schema(value_type = schema::State)]
    pub state: String,
    /// When it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Time>,
    /// How long from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Which rule chose the delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::DelayRule>)]
    pub delay_rule: Option<String>,
    /// Why it is dead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::DeadReason>)]
    pub dead_reason: Option<String>,
    /// Where it was moved, dead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::QueueName>)]
    pub moved_to: Option<String>,
}

/// It is settled, and there is nothing more to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Acked {}

/// The new deadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Extended {
    /// Until when.
    pub deadline: Time,
}

/// Where a message stands that was given back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Released {
    /// From when on it may be leased.
    pub visible_at: Time,
    /// Why it died instead: it has no delivery left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::DeadReason>)]
    pub dead_reason: Option<String>,
}

/// What became of one settlement of several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SettleResult<T> {
    /// Whether it was applied.
    pub ok: bool,
    /// Why not: `INVALID_RECEIPT`, `NOT_FOUND` or `LEASE_LOST`. Nothing was changed then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<T>,
}

/// What became of several settlements, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SettleResults<T> {
    /// One for each.
    pub results: Vec<SettleResult<T>>,
}

/// End what is overdue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RequeueExpiredRequest {
    /// At most so many leases, 1 to 1,000.
    #[schema(value_type = Option<schema::Limit>)]
    pub limit: Option<u32>,
    /// The error to write down.
    pub error: Option<String>,
}

/// How many leases were ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Requeued {
    /// How many.
    pub count: u64,
}
