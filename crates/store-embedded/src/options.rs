//! What a store is opened with.

use redrive_core::limits::Limits;
use redrive_core::queue::QueueSettings;
use redrive_core::time::Millis;

/// What an answer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Until it is on the disk: it survives the end of the machine's power.
    #[default]
    Sync,
    /// Until the kernel has it; the disk gets it at the latest so much later. Survives the end of the process.
    Interval(Millis),
    /// Until the kernel has it; the disk gets it when the kernel likes. Survives the end of the process.
    None,
}

/// What a store is opened with.
#[derive(Debug, Clone)]
pub struct Options {
    /// The settings of a queue that sets nothing.
    pub defaults: QueueSettings,
    /// What a queue may hold.
    pub limits: Limits,
    /// What an answer waits for.
    pub durability: Durability,
    /// The size of a segment of the journal, in bytes. One that must take a larger frame is larger.
    pub segment_bytes: u32,
    /// The first epoch of lease ids, for a directory that is empty.
    pub first_epoch: u16,
    /// What a lease that has run out when the store opens is granted.
    pub restart_grace: Millis,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            defaults: QueueSettings::default(),
            limits: Limits::default(),
            durability: Durability::Sync,
            segment_bytes: 32 * 1024 * 1024,
            first_epoch: 1,
            restart_grace: Millis::from_secs(5),
        }
    }
}
