//! What an operator may set of the bus.

use redrive_core::time::Millis;

use crate::webhook::WebhookConfig;

/// What an operator may set of the bus.
#[derive(Debug, Clone)]
pub struct BusConfig {
    /// How webhooks are sent; `None` leaves them to other instances.
    pub webhooks: Option<WebhookConfig>,
    /// How many events of one sequential topic are under way at a time, at one instance.
    pub sequences_in_flight: u32,
    /// For how long deliveries may go on when the bus ends; then they are given back unharmed.
    pub grace: Millis,
    /// How many subscriptions, and how many types of events, have metrics of their own; the rest is counted as `other`.
    pub metric_labels_max: usize,
}

impl Default for BusConfig {
    fn default() -> Self {
        Self {
            webhooks: None,
            sequences_in_flight: 16,
            grace: Millis::from_secs(5),
            metric_labels_max: 1_000,
        }
    }
}
