//! What an operator may set of the broker.

use std::num::NonZeroUsize;

use redrive_core::queue::QueueSettings;
use redrive_core::time::Millis;
use redrive_store::Limit;

use crate::trace::TraceConfig;

/// What an operator may set of the broker.
#[derive(Debug, Clone)]
pub struct BrokerConfig {
    /// The settings of a queue that sets nothing; the store was opened with the same.
    pub defaults: QueueSettings,
    /// Whether a queue comes into being by the first message for it.
    pub auto_create: bool,
    /// How often what is overdue is looked for where no timer says when.
    pub overdue_check_interval: Millis,
    /// How many overdue leases are ended in one step.
    pub requeue_batch_size: Limit,
    /// How many long polls may wait at a time, in all queues together.
    pub polls_max: usize,
    /// How long a poll may wait at most.
    pub poll_wait_max: Millis,
    /// How many events are kept for readers that come back.
    pub events_kept: NonZeroUsize,
    /// How far apart the samples of a queue's history are.
    pub history_interval: Millis,
    /// How many samples are kept.
    pub history_samples: usize,
    /// How many queues, and how many message types, have metrics of their own; the rest is counted as `other`.
    pub metric_labels_max: usize,
    /// How long entries of the audit trail are kept.
    pub audit_kept: Millis,
    /// Whether who shows no key, where keys are needed, is told how much happens.
    pub open_reading: bool,
    /// How attempts are traced, if they are.
    pub traces: Option<TraceConfig>,
}

impl Default for BrokerConfig {
    fn default() -> Self {
        Self {
            defaults: QueueSettings::default(),
            auto_create: false,
            overdue_check_interval: Millis::from_secs(5),
            requeue_batch_size: Limit::LEASE_SETTLES,
            polls_max: 20_000,
            poll_wait_max: Millis::from_secs(60),
            events_kept: NonZeroUsize::new(8_192).expect("not zero"),
            history_interval: Millis::from_secs(10),
            history_samples: 360,
            metric_labels_max: 1_000,
            audit_kept: Millis::from_days(90),
            open_reading: false,
            traces: None,
        }
    }
}
