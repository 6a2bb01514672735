//! What is in a directory, by queue, without opening a store on it: an open store begins an epoch and grants leases their
//! grace, which is no way to look at something.

use std::sync::Arc;

use redrive_core::queue::QueueName;
use redrive_store::{QueueError, QueueStats, StoreError};

use crate::clock::{Clock, MachineClock};
use crate::core::Core;
use crate::disk::Disk;
use crate::{Options, Usage};

/// What is in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// What the journal takes.
    pub usage: Usage,
    /// The queues, by name.
    pub queues: Vec<QueueStats>,
    /// Entries of the registry.
    pub entries: u64,
}

/// Counts what is in a directory that no process has open, and changes nothing in it.
pub fn contents(disk: &Arc<dyn Disk>, options: &Options) -> Result<Contents, StoreError> {
    let mut core = Core::read(disk, Arc::new(MachineClock), options.clone(), true)?;
    // As a store that is opened now would count it.
    let now = core.time.floor.max(MachineClock.wall());
    let (usage, entries) = (core.usage(), core.registry.len() as u64);
    let names: Vec<QueueName> = core.names.keys().cloned().collect();
    let stats = names.iter().map(|name| core.stats(now, name));
    let queues: Result<Vec<QueueStats>, QueueError> = stats.collect();
    let queues = queues.map_err(|error| match error {
        QueueError::Store(error) => error,
        other => StoreError::Unavailable(other.into()),
    })?;
    Ok(Contents { usage, queues, entries })
}
