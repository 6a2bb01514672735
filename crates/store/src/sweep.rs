//! What time does to messages: overdue leases end, old messages lapse, kept ones are forgotten.

use redrive_core::queue::QueueName;

use crate::limit::Limit;
use crate::settle::Judged;

/// A step of a sweeper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepRequest {
    /// In one queue, or in all, among which there is no order.
    pub queue: Option<QueueName>,
    /// At most so many messages.
    pub limit: Limit,
}

/// What was overdue or too old, in the order in which it was dealt with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Swept {
    /// Leases that ran out, and what they led to.
    pub expired: Vec<Judged>,
    /// Waiting messages that can never be handed out again.
    pub lapsed: Vec<Judged>,
}
