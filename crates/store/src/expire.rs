//! expire: a sweeper, or a person, ends what is overdue.

use redrive_core::message::ErrorText;
use redrive_core::queue::QueueName;

use crate::limit::Limit;

/// Ends leases whose deadline has passed, the most overdue first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpireRequest {
    /// In one queue, or in all, among which there is no order.
    pub queue: Option<QueueName>,
    /// At most so many.
    pub limit: Limit,
    /// The error to write down; `None` is the usual one.
    pub error: Option<ErrorText>,
    /// Chance for the judge.
    pub seed: u64,
}
