//! What may stand in a field, for the description of the API: lengths, patterns, ranges and the words of a choice.
//!
//! Nothing has these types. A field names one as the type of its schema, so that each rule is written once and has a name
//! in the description. The numbers are the server's limits; it has a test that they agree. A description counts characters
//! and the server counts bytes: text beyond ASCII meets its limit earlier.

use utoipa::openapi::schema::{ArrayBuilder, KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

const DAY_MS: usize = 24 * 60 * 60 * 1_000;
/// Text without control characters.
const PLAIN: &str = r"^[^\x00-\x1F\x7F-\x9F]*$";

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn short(max: usize) -> ObjectBuilder {
    text().max_length(Some(max)).pattern(Some(PLAIN))
}

fn formatted(format: &str) -> ObjectBuilder {
    text().format(Some(SchemaFormat::Custom(format.to_owned())))
}

fn word<const N: usize>(words: [&str; N]) -> ObjectBuilder {
    text().enum_values(Some(words))
}

fn base64() -> ObjectBuilder {
    text().format(Some(SchemaFormat::KnownFormat(KnownFormat::Byte))).content_encoding("base64")
}

fn whole(format: KnownFormat, min: usize) -> ObjectBuilder {
    let format = Some(SchemaFormat::KnownFormat(format));
    ObjectBuilder::new().schema_type(Type::Integer).format(format).minimum(Some(min))
}

fn between(format: KnownFormat, min: usize, max: usize) -> ObjectBuilder {
    whole(format, min).maximum(Some(max))
}

fn number(min: f64, max: f64) -> ObjectBuilder {
    let format = Some(SchemaFormat::KnownFormat(KnownFormat::Double));
    ObjectBuilder::new().schema_type(Type::Number).format(format).minimum(Some(min)).maximum(Some(max))
}

macro_rules! schemas {
    ($($(#[doc = $doc:literal])+ $name:ident = $schema:expr;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy)]
        pub enum $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                $schema.description(Some(concat!($($doc),+).trim())).into()
            }
        }

        impl ToSchema for $name {}
    )+};
}

schemas! {
    /// The name of a queue.
    QueueName = text().min_length(Some(1)).max_length(Some(80)).pattern(Some("^[A-Za-z0-9._-]+$")).examples(["orders"]);
    /// The id of a message.
    MessageId = formatted("uuid");
    /// The fencing token of a lease: a decimal number below 2^64, as text.
    LeaseId = text().pattern(Some("^[0-9]+$"));
    /// The id of an operation.
    OperationId = formatted("uuid");
    /// What an event is about: segments of `A-Z a-z 0-9 _ -`, separated by dots.
    Topic = text().min_length(Some(1)).max_length(Some(255)).pattern(Some(r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")).examples(["orders.created"]);
    /// Which topics: `*` stands for one segment and `**` for any number of them; a lone `*` is all of them.
    TopicPattern = text().min_length(Some(1)).max_length(Some(255)).pattern(Some(r"^([A-Za-z0-9_-]+|\*\*?)(\.([A-Za-z0-9_-]+|\*\*?))*$")).examples(["orders.*"]);
    /// In which way an event reaches several subscriptions.
    Dispatch = word(["independent", "sequential"]);
    /// For how long events can be replayed, in milliseconds: ten years at most.
    TopicRetention = between(KnownFormat::UInt64, 1, 3_650 * DAY_MS);
    /// The name of a subscription.
    SubscriptionId = text().min_length(Some(1)).max_length(Some(64)).pattern(Some("^[A-Za-z0-9._-]+$")).examples(["mailer"]);
    /// Where the events of a subscription go.
    TargetKind = word(["handler", "webhook", "queue"]);
    /// The address of an endpoint.
    WebhookUrl = formatted("uri").max_length(Some(2_048)).examples(["https://example.com/hooks"]);
    /// How an event is written for an endpoint.
    WebhookFormat = word(["structured", "binary"]);
    /// What webhooks are signed with: `whsec_` and 24 to 64 bytes as base64.
    WebhookSecret = text().pattern(Some("^whsec_[A-Za-z0-9+/]{32,88}={0,2}$"));
    /// For how long an endpoint may do nothing but fail, in milliseconds: from a minute to a year.
    DisableAfter = between(KnownFormat::UInt64, 60 * 1_000, 365 * DAY_MS);
    /// How long an attempt may take, in milliseconds: an hour at most.
    DeliveryTimeout = between(KnownFormat::UInt64, 1, 60 * 60 * 1_000);
    /// How many deliveries are under way at a time.
    InFlight = between(KnownFormat::UInt32, 1, 1_000);
    /// Whether events come to a subscription, and go on from there.
    SubscriptionState = word(["active", "paused", "disabled"]);
    /// Why a subscription was switched off.
    WhyDisabled = word(["gone", "failing", "operator"]);
    /// By which way an event comes once more.
    HowResent = word(["redriven", "retried_now", "enqueued"]);
    /// Headers that an event must have: each of them, with one of the values that are named for it.
    HeaderFilter = ObjectBuilder::new()
        .max_properties(Some(16))
        .property_names(Some(text().min_length(Some(1)).pattern(Some("^[!-~]+$"))))
        .additional_properties(Some(ArrayBuilder::new().items(text()).min_items(Some(1))));
    /// The public name of an API key.
    KeyId = text().pattern(Some("^[0-9a-f]{16}$")).examples(["00c0ffee00c0ffee"]);
    /// What people call an API key.
    KeyName = text().min_length(Some(1)).max_length(Some(80)).pattern(Some(PLAIN));
    /// What a grant is for. Each is for itself; `manage` reads, too, and `admin` may do everything.
    Scope = word(["read", "produce", "consume", "manage", "admin"]);
    /// Which queues a grant is for: `*` stands for any run of characters.
    QueuePattern = text().min_length(Some(1)).max_length(Some(80)).pattern(Some("^[A-Za-z0-9._*-]+$")).examples(["orders.*"]);
    /// Whether an API key works.
    KeyState = word(["active", "expired", "revoked"]);
    /// A span in milliseconds, up to seven days.
    OverlapMs = between(KnownFormat::Int64, 0, 7 * DAY_MS);
    /// Where a message stands.
    State = word(["delayed", "ready", "leased", "dead", "done"]);
    /// Why a message is dead.
    DeadReason = word(["max_attempts", "buried", "expired_ttl", "max_deliveries", "not_reached"]);
    /// Messages that were never tried, or those that failed before.
    Lane = word(["fresh", "retry"]);
    /// How long a dedup key keeps a second message out: for the queue's window, or until the message is done or dead.
    Uniqueness = word(["window", "until_done"]);
    /// Whether retries go to every consumer, or only to those that ask for them.
    RetryLane = word(["shared", "separate"]);
    /// What ended an attempt that did not succeed.
    Cause = word(["nack", "expire", "bury"]);
    /// Which rule chose a delay.
    DelayRule = word(["backoff", "at_least", "exactly", "overdue"]);
    /// The state of a breaker.
    BreakerState = word(["closed", "open", "half_open"]);
    /// What an operation does.
    OperationKind = word(["redrive", "discard", "move"]);
    /// Where an operation stands.
    OperationState = word(["running", "paused", "done", "cancelled", "failed"]);
    /// What a person should look at.
    AttentionKind = word(["storage", "breaker_open", "endpoint_failing", "overdue", "no_consumers", "subscription_disabled",
        "oldest_ready", "dead_rising", "leases_expiring", "operation_failed", "paused"]);
    /// How bad something is.
    Severity = word(["critical", "warning", "notice"]);
    /// By what queues are ordered: by name, by how many of their messages are in a state, by the age of the oldest ready message,
    /// or by how many attempts failed in the last minute.
    StatsOrder = word(["name", "ready", "leased", "delayed", "dead", "oldest", "failed"]);
    /// A part of a queue's name, in small letters or capitals.
    QueueNamePart = text().max_length(Some(80));
    /// How many retries are shown.
    ScheduleCount = between(KnownFormat::UInt32, 1, 50);
    /// What a program can do about a problem.
    Advice = word(["retry", "ask", "give_up"]);
    /// How urgent a message is; 9 is served first.
    Priority = between(KnownFormat::UInt8, 0, 9);
    /// How many, of what a call may ask for.
    Limit = between(KnownFormat::UInt32, 1, 1_000);
    /// A count.
    Count = between(KnownFormat::UInt32, 0, u32::MAX as usize);
    /// A count that is not zero.
    Positive = between(KnownFormat::UInt32, 1, u32::MAX as usize);
    /// A delay, in milliseconds: ten years at most.
    Delay = between(KnownFormat::UInt64, 0, 3_650 * DAY_MS);
    /// How long a lease lasts, in milliseconds: seven days at most.
    LeaseTime = between(KnownFormat::UInt64, 1, 7 * DAY_MS);
    /// For how long from now a lease goes on, in milliseconds: seven days at most.
    Extension = between(KnownFormat::UInt64, 0, 7 * DAY_MS);
    /// How long messages are kept, in milliseconds: ten years at most.
    RetentionAge = between(KnownFormat::UInt64, 0, 3_650 * DAY_MS);
    /// How long a dedup key is held, in milliseconds: seven days at most.
    DedupWindow = between(KnownFormat::UInt64, 0, 7 * DAY_MS);
    /// How many messages may wait.
    MaxWaiting = whole(KnownFormat::UInt64, 1);
    /// By how much a delay grows from one attempt to the next.
    Multiplier = number(1.0, 1_000.0);
    /// A share of a whole.
    Share = number(0.0, 1.0);
    /// How much chance spreads the delays: not at all, between nothing and the delay, or by this share up and down.
    Jitter = text().pattern(Some(r"^(none|full|0(\.[0-9]+)?|1(\.0+)?)$"));
    /// How long an outcome counts for a breaker, or a probe may wait, in milliseconds.
    BreakerWindow = between(KnownFormat::UInt64, 100, 60 * 60 * 1_000);
    /// How long a breaker stays open, in milliseconds.
    BreakerOpen = between(KnownFormat::UInt64, 100, DAY_MS);
    /// How many messages a breaker looks at.
    BreakerMessages = between(KnownFormat::UInt32, 2, 4_096);
    /// The share of failures that opens a breaker.
    BreakerShare = number(0.001, 0.999);
    /// A message's type or source: 128 bytes at most.
    Class = short(128);
    /// The tenant a message belongs to: 128 bytes at most.
    FairnessKey = short(128);
    /// The name of a consumer: 256 bytes at most.
    ConsumerName = short(256);
    /// A producer's own name for a piece of work: 256 bytes at most.
    DedupKey = short(256).min_length(Some(1));
    /// Who asked for something, or why: 1,024 bytes at most, in lines.
    Note = text().max_length(Some(1_024)).pattern(Some(r"^[^\x00-\x09\x0B-\x1F\x7F-\x9F]*$"));
    /// A part of an error: 1,024 bytes at most.
    ErrorPart = text().max_length(Some(1_024));
    /// The media type of a body.
    ContentType = text().min_length(Some(1)).max_length(Some(256)).pattern(Some("^[ -~]+$"));
    /// What the errors of a group of dead messages have in common.
    Fingerprint = text().pattern(Some("^[0-9a-f]{16}$"));
    /// A body, as base64 with padding.
    Base64 = base64();
    /// Where to go on from, as base64 with padding: 4 KiB at most.
    Checkpoint = base64().max_length(Some(5_464));
    /// Pairs of strings that travel with a message: 64 KiB in all. Names are printable ASCII without spaces.
    Headers = ObjectBuilder::new()
        .property_names(Some(text().min_length(Some(1)).pattern(Some("^[!-~]+$"))))
        .additional_properties(Some(text().pattern(Some(r"^[^\x00-\x08\x0A-\x1F\x7F-\x9F]*$"))));
    /// Fairness keys and how many messages each is served in its turn; a key that is not named has weight 1.
    Weights = ObjectBuilder::new()
        .max_properties(Some(10_000))
        .property_names(Some(short(128)))
        .additional_properties(Some(between(KnownFormat::UInt32, 1, 1_000)));
}

macro_rules! lists {
    ($($(#[doc = $doc:literal])+ $name:ident of $item:ident;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy)]
        pub enum $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let items = Ref::from_schema_name($item::name());
                ArrayBuilder::new().items(items).max_items(Some(100)).into()
            }
        }

        impl ToSchema for $name {
            fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
                schemas.push(($item::name().into_owned(), $item::schema()));
            }
        }
    )+};
}

lists! {
    /// Some states.
    States of State;
    /// Some messages.
    MessageIds of MessageId;
    /// Some types, or some sources.
    Classes of Class;
    /// Some fairness keys.
    FairnessKeys of FairnessKey;
    /// Some consumers.
    ConsumerNames of ConsumerName;
    /// Some reasons.
    DeadReasons of DeadReason;
}
