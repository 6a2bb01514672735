//! Queues: what may be set, and what is in them.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use redrive_wire::v1;

use crate::limits::millis;

/// How far a delay may be off, so that what failed together does not come back together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Jitter {
    /// Not at all.
    None,
    /// By this share, up or down.
    Proportional(f64),
    /// Anything from nothing to the delay.
    Full,
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Full => f.write_str("full"),
            Self::Proportional(share) => write!(f, "{share}"),
        }
    }
}

/// When what failed is tried again. What is not set follows the server's defaults.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RetrySettings {
    /// How often a message is tried at most; 0 is no limit.
    pub max_attempts: Option<u32>,
    /// The delay after the first failure.
    pub base_delay: Option<Duration>,
    /// By how much each delay is longer than the one before.
    pub multiplier: Option<f64>,
    /// The longest delay; zero is no limit.
    pub max_delay: Option<Duration>,
    /// How far a delay may be off.
    pub jitter: Option<Jitter>,
}

/// What may be set of a queue. What is not set follows the server's defaults.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueueSettings {
    /// How long a message is leased, where nobody else says.
    pub lease_timeout: Option<Duration>,
    /// How long a lease may be, all extensions together.
    pub max_lease: Option<Duration>,
    /// How often a message is handed out at most; 0 is no limit.
    pub max_deliveries: Option<u32>,
    /// When what failed is tried again.
    pub retry: RetrySettings,
    /// The share of what is handed out that goes to retries while there is fresh work, too.
    pub retry_share: Option<f64>,
    /// Whether a breaker stops the queue during an outage.
    pub breaker: Option<bool>,
    /// Where dead messages go; empty is nowhere.
    pub dead_letter_to: Option<String>,
    /// How long a dedup key is held.
    pub dedup_window: Option<Duration>,
    /// How many messages may wait; 0 is no limit.
    pub max_waiting: Option<u64>,
    /// How many messages each fairness key is served in its turn.
    pub weights: HashMap<String, u32>,
}

impl QueueSettings {
    /// How often a message is tried at most.
    #[must_use]
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.retry.max_attempts = Some(attempts);
        self
    }

    /// The delay after the first failure.
    #[must_use]
    pub fn base_delay(mut self, delay: Duration) -> Self {
        self.retry.base_delay = Some(delay);
        self
    }

    /// How far a delay may be off.
    #[must_use]
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.retry.jitter = Some(jitter);
        self
    }

    /// How long a message is leased.
    #[must_use]
    pub fn lease_timeout(mut self, time: Duration) -> Self {
        self.lease_timeout = Some(time);
        self
    }

    /// How many messages a fairness key is served in its turn.
    #[must_use]
    pub fn weight(mut self, key: impl Into<String>, weight: u32) -> Self {
        self.weights.insert(key.into(), weight);
        self
    }
}

impl From<QueueSettings> for v1::QueueConfig {
    fn from(settings: QueueSettings) -> Self {
        Self {
            lease_timeout_ms: settings.lease_timeout.map(millis),
            max_lease_ms: settings.max_lease.map(millis),
            max_deliveries: settings.max_deliveries,
            retry: Some(v1::Retry {
                max_attempts: settings.retry.max_attempts,
                base_delay_ms: settings.retry.base_delay.map(millis),
                multiplier: settings.retry.multiplier,
                max_delay_ms: settings.retry.max_delay.map(millis),
                jitter: settings.retry.jitter.map(|jitter| jitter.to_string()),
            }),
            retry_share: settings.retry_share,
            breaker: settings.breaker,
            dead_letter_to: settings.dead_letter_to,
            dedup_window_ms: settings.dedup_window.map(millis),
            max_waiting: settings.max_waiting,
            weights: settings.weights,
            ..Self::default()
        }
    }
}

/// A queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// When it was made, in milliseconds since the Unix epoch.
    pub created_at_ms: u64,
    /// Raised by every change of its settings.
    pub version: u64,
    /// Whether nothing is handed out of it.
    pub paused: bool,
}

impl From<v1::Queue> for Queue {
    fn from(queue: v1::Queue) -> Self {
        Self {
            name: queue.name,
            created_at_ms: queue.created_at_ms,
            version: queue.version,
            paused: queue.paused,
        }
    }
}

/// What is in a queue at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Waiting for their time.
    pub delayed: u64,
    /// Waiting for a consumer.
    pub ready: u64,
    /// With a consumer.
    pub leased: u64,
    /// Given up.
    pub dead: u64,
    /// Done, and kept for a while.
    pub done: u64,
    /// With a consumer whose lease has run out.
    pub overdue: u64,
    /// How long the oldest of those that wait for a consumer has waited.
    pub oldest_ready_age: Option<Duration>,
}

impl From<v1::QueueStatsResponse> for Stats {
    fn from(stats: v1::QueueStatsResponse) -> Self {
        Self {
            delayed: stats.delayed,
            ready: stats.ready,
            leased: stats.leased,
            dead: stats.dead,
            done: stats.done,
            overdue: stats.overdue,
            oldest_ready_age: stats.oldest_ready_age_ms.map(Duration::from_millis),
        }
    }
}
