//! The settings of a queue: what somebody set, and what that makes over the defaults.

use std::num::{NonZeroU32, NonZeroU64};

use crate::invalid::Invalid;
use crate::limits::{DEDUP_WINDOW_MAX, LEASE_MAX, RETENTION_MAX};
use crate::policy::{BreakerConfig, RetryLane, RetryOverride, RetryPolicy, Share};
use crate::queue::{QueueName, Weights};
use crate::time::Millis;

/// How long, and how many, messages of one state are kept; whichever is less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Retention {
    /// Older ones go; `None` is no limit.
    pub age: Option<Millis>,
    /// The oldest beyond this many go; `None` is no limit.
    pub count: Option<u64>,
}

/// Defines [`QueueSettings`] and, with every field optional, [`QueueConfig`], so that the two cannot differ.
macro_rules! settings {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $default:expr,)*) => {
        /// The settings in force: what was set, over the defaults.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct QueueSettings {
            $($(#[$doc])* pub $field: $type,)*
            /// When to retry what failed.
            pub retry: RetryPolicy,
        }

        impl Default for QueueSettings {
            fn default() -> Self {
                Self { $($field: $default,)* retry: RetryPolicy::default() }
            }
        }

        /// What somebody set. A field that is `None` comes from the defaults, and follows them when they change.
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct QueueConfig {
            $($(#[$doc])* pub $field: Option<$type>,)*
            /// When to retry what failed, field by field.
            pub retry: RetryOverride,
        }

        impl QueueConfig {
            /// The settings in force over these defaults.
            pub fn over(&self, defaults: &QueueSettings) -> QueueSettings {
                QueueSettings {
                    $($field: self.$field.clone().unwrap_or_else(|| defaults.$field.clone()),)*
                    retry: self.retry.over(defaults.retry),
                }
            }
        }
    };
}

settings! {
    /// How long a lease lasts.
    lease_timeout: Millis = Millis::from_secs(30),
    /// How long a lease may last, all extensions together.
    max_lease: Millis = Millis::from_secs(12 * 3600),
    /// How often a message may be handed out, whoever is charged; `None` is no limit.
    max_deliveries: Option<NonZeroU32> = None,
    /// What retries get of what is handed out while there is fresh work.
    retry_share: Share = Share::FIFTH,
    /// Whether retries go to every consumer or only to those that ask.
    retry_lane: RetryLane = RetryLane::Shared,
    /// How many leased messages may be retries; `None` is no limit.
    max_retries_in_flight: Option<NonZeroU32> = None,
    /// Whether an overdue lease waits for the backoff, instead of being ready at once.
    overdue_backoff: bool = false,
    /// Whether a breaker stops the queue during an outage, and how.
    breaker: Option<BreakerConfig> = None,
    /// Where dead messages are moved; `None` leaves them dead here.
    dead_letter_to: Option<QueueName> = None,
    /// How long acked messages are kept; `None` is not at all.
    retain_done: Option<Retention> = None,
    /// How long dead messages are kept; `None` is for ever.
    retain_dead: Option<Retention> = None,
    /// How long a dedup key keeps a second message out.
    dedup_window: Millis = Millis::from_secs(300),
    /// How many messages may be ready or delayed before enqueues are refused; `None` is no limit.
    max_waiting: Option<NonZeroU64> = None,
    /// How many messages each fairness key is served in its turn.
    weights: Weights = Weights::default(),
}

impl QueueSettings {
    /// Refuses settings that contradict each other or a limit, naming the field.
    pub fn check(&self) -> Result<(), Invalid> {
        let shortest = Millis::new(1);
        self.max_lease.within("max_lease", shortest, LEASE_MAX)?;
        self.lease_timeout.within("lease_timeout", shortest, self.max_lease)?;
        self.dedup_window.within("dedup_window", Millis::ZERO, DEDUP_WINDOW_MAX)?;
        check_retention("retain_done", self.retain_done)?;
        check_retention("retain_dead", self.retain_dead)?;
        if let Some(breaker) = &self.breaker {
            breaker.check()?;
        }
        self.retry.check()
    }
}

fn check_retention(field: &'static str, retention: Option<Retention>) -> Result<(), Invalid> {
    match retention.and_then(|retention| retention.age) {
        Some(age) => age.within(field, Millis::ZERO, RETENTION_MAX).map(|_| ()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_design() {
        let settings = QueueSettings::default();
        assert_eq!(settings.lease_timeout, Millis::from_secs(30));
        assert_eq!(settings.max_lease, Millis::from_secs(43_200));
        assert_eq!(settings.retry.max_attempts, NonZeroU32::new(3));
        assert_eq!(settings.retry_share, Share::new(0.2).unwrap());
        assert_eq!(settings.dedup_window, Millis::from_secs(300));
        assert!(settings.check().is_ok());
    }

    #[test]
    fn what_is_set_wins_and_the_rest_follows_the_defaults() {
        let config = QueueConfig { overdue_backoff: Some(true), ..QueueConfig::default() };
        let defaults = QueueSettings { lease_timeout: Millis::from_secs(7), ..QueueSettings::default() };
        let settings = config.over(&defaults);
        assert!(settings.overdue_backoff);
        assert_eq!(settings.lease_timeout, Millis::from_secs(7));
        assert_eq!(QueueConfig::default().over(&defaults), defaults);
    }

    #[test]
    fn contradictions_name_their_field() {
        let field = |settings: QueueSettings| settings.check().unwrap_err().field;
        let good = QueueSettings::default;
        assert_eq!(field(QueueSettings { lease_timeout: Millis::ZERO, ..good() }), "lease_timeout");
        assert_eq!(field(QueueSettings { lease_timeout: Millis::from_days(1), ..good() }), "lease_timeout");
        assert_eq!(field(QueueSettings { max_lease: Millis::from_days(8), ..good() }), "max_lease");
        assert_eq!(field(QueueSettings { dedup_window: Millis::from_days(8), ..good() }), "dedup_window");
        let for_ever = Some(Retention { age: Some(Millis::new(u64::MAX)), count: None });
        assert_eq!(field(QueueSettings { retain_done: for_ever, ..good() }), "retain_done");
        assert_eq!(field(QueueSettings { retain_dead: for_ever, ..good() }), "retain_dead");
    }
}
