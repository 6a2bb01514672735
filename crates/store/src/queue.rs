//! create, update, delete, pause: what an operator does to a queue.

use redrive_core::message::FairnessKey;
use redrive_core::queue::{Pause, QueueConfig, QueueName};

/// A new queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateQueue {
    /// Its name.
    pub name: QueueName,
    /// What is set.
    pub config: QueueConfig,
}

/// A new configuration for a queue that is there. It acts on what is waiting at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateQueue {
    /// Its name.
    pub name: QueueName,
    /// What is set from now on; what is not set here goes back to the defaults.
    pub config: QueueConfig,
    /// The version the caller saw; `None` overwrites whatever is there.
    pub expected: Option<u64>,
}

/// The end of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteQueue {
    /// Its name.
    pub name: QueueName,
    /// With all its messages, leased ones too; otherwise only an empty queue goes.
    pub force: bool,
}

/// A pause, or its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseQueue {
    /// The queue.
    pub name: QueueName,
    /// One key of it, or all.
    pub key: Option<FairnessKey>,
    /// How long; `None` resumes.
    pub pause: Option<Pause>,
}
