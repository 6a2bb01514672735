//! Every limit of Redrive, one name and one unit each.
//!
//! A limit that bounds a single value is a constant, checked where the value is parsed. A limit that bounds
//! what a queue may hold depends on the deployment, so it is a field of [`Limits`] and an argument of a store.

use crate::time::Millis;

/// Longest queue name, in bytes.
pub const QUEUE_NAME_BYTES_MAX: usize = 80;
/// Largest body accepted unless the operator raises it, in bytes.
pub const BODY_BYTES_DEFAULT_MAX: usize = 1024 * 1024;
/// All header names and values of one message together, in bytes.
pub const HEADERS_BYTES_MAX: usize = 64 * 1024;
/// Longest content type, in bytes.
pub const CONTENT_TYPE_BYTES_MAX: usize = 256;
/// Longest message type or source, in bytes.
pub const CLASS_BYTES_MAX: usize = 128;
/// Longest fairness key, in bytes.
pub const FAIRNESS_KEY_BYTES_MAX: usize = 128;
/// Longest dedup key, in bytes.
pub const DEDUP_KEY_BYTES_MAX: usize = 256;
/// Longest consumer name, in bytes.
pub const CONSUMER_BYTES_MAX: usize = 256;
/// Longest error text that is kept, in bytes; the rest is cut off.
pub const ERROR_BYTES_MAX: usize = 1024;
/// Longest name of who asked for something, or reason why, in bytes.
pub const NOTE_BYTES_MAX: usize = 1024;
/// Largest checkpoint, in bytes.
pub const CHECKPOINT_BYTES_MAX: usize = 4 * 1024;
/// Failed attempts kept with a message; older ones are forgotten.
pub const ATTEMPT_RECORDS_MAX: usize = 20;
/// Longest topic or topic pattern, in bytes.
pub const TOPIC_BYTES_MAX: usize = 255;
/// Most segments of a topic or topic pattern.
pub const TOPIC_SEGMENTS_MAX: usize = 32;
/// Longest name of a subscription, in bytes.
pub const SUBSCRIPTION_ID_BYTES_MAX: usize = 64;
/// Most subscriptions of one store.
pub const SUBSCRIPTIONS_MAX: usize = 200_000;
/// Most topic patterns with settings of their own.
pub const TOPICS_MAX: usize = 1_000;
/// Most subscriptions that one publish reaches in one step; beyond that a relay brings the event to them.
pub const FAN_OUT_MAX: usize = 1_000;
/// Most headers that the filter of one subscription names.
pub const HEADER_FILTERS_MAX: usize = 16;
/// Most deliveries of one subscription that an instance has under way at a time.
pub const IN_FLIGHT_MAX: u32 = 1_000;
/// Longest URL of a webhook, in bytes.
pub const URL_BYTES_MAX: usize = 2_048;
/// Most secrets with which one webhook is signed at a time.
pub const WEBHOOK_SECRETS_MAX: usize = 5;
/// How much of a webhook's request and of its response is kept for people to see, in bytes.
pub const CAPTURE_BYTES_MAX: usize = 1024;
/// Longest receipt that is looked at, in characters.
pub const RECEIPT_CHARS_MAX: usize = 256;
/// Deepest nesting of a body that is given as JSON: whoever takes the message has to parse it.
pub const JSON_DEPTH_MAX: usize = 64;
/// Most items of one batch.
pub const BATCH_ITEMS_MAX: usize = 1_000;
/// Most bytes of bodies, headers and checkpoints of one batch.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Most messages one page of a listing or one step of a bulk verb looks at.
pub const PAGE_ITEMS_MAX: usize = 1_000;
/// Most types, sources, keys or ids that one filter names.
pub const FILTER_VALUES_MAX: usize = 100;
/// Most overdue leases that one lease call ends, and most waiting messages that it lapses, before it picks.
pub const LEASE_SETTLES_MAX: usize = 100;
/// Longest key of a registry entry or name of a log, in bytes.
pub const REGISTRY_KEY_BYTES_MAX: usize = 256;
/// Largest value of a registry entry or log record, in bytes.
pub const REGISTRY_VALUE_BYTES_MAX: usize = 256 * 1024;
/// Longest signal that one instance tells the others, in bytes: a `NOTIFY` of PostgreSQL carries less than 8,000.
pub const SIGNAL_BYTES_MAX: usize = 4 * 1024;
/// Most messages whose outcome one breaker remembers; the oldest outcome makes room.
pub const BREAKER_WINDOW_MESSAGES_MAX: usize = 4_096;
/// Most attempts that a broker traces at a time; more go untraced.
pub const TRACED_ATTEMPTS_MAX: usize = 100_000;

/// Longest name of an API key, in bytes.
pub const KEY_NAME_BYTES_MAX: usize = 80;
/// Most grants of one API key.
pub const GRANTS_MAX: usize = 64;
/// Most API keys of one store. Those that ended count, and make room when it is needed.
pub const API_KEYS_MAX: usize = 10_000;
/// Longest time for which the secret that a rotation replaces still works: seven days.
pub const KEY_OVERLAP_MAX: Millis = Millis::from_days(7);

/// Largest weight of a fairness key.
pub const WEIGHT_MAX: u32 = 1_000;
/// Most fairness keys of one queue that carry a weight or a pause of their own.
pub const KEY_SETTINGS_MAX: usize = 10_000;
/// Longest delay a policy or a caller may ask for: ten years.
pub const DELAY_MAX: Millis = Millis::from_days(3_650);
/// Longest retention: ten years.
pub const RETENTION_MAX: Millis = Millis::from_days(3_650);
/// Longest dedup window: seven days.
pub const DEDUP_WINDOW_MAX: Millis = Millis::from_days(7);
/// Longest lease, all extensions together, that a queue may allow: seven days.
pub const LEASE_MAX: Millis = Millis::from_days(7);
/// Largest multiplier of a retry policy.
pub const MULTIPLIER_MAX: u32 = 1_000;

/// What a queue may hold, as far as the operator decides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Distinct (type, source) pairs among the messages of one queue.
    pub classes_per_queue: usize,
    /// Dedup keys that one queue holds at a time.
    pub dedup_keys_per_queue: usize,
    /// Queues in one store.
    pub queues: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { classes_per_queue: 1_024, dedup_keys_per_queue: 1_000_000, queues: 100_000 }
    }
}
