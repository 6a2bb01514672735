//! What a store can do, asked instead of found out.

use std::fmt;

use redrive_core::time::Millis;

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Survives {
    /// Nothing: it lives in the process.
    Nothing,
    /// The end of the process.
    ProcessCrash,
    /// The end of the machine's power.
    PowerLoss,
    /// The end of the machine's disk: another one has it, too.
    DiskLoss,
}

impl Survives {
    /// The stable word for it in metrics and health checks.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::ProcessCrash => "process_crash",
            Self::PowerLoss => "power_loss",
            Self::DiskLoss => "disk_loss",
        }
    }
}

impl fmt::Display for Survives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a store can do beyond what all can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// The name of the backend, for logs and reports.
    pub name: &'static str,
    /// Whether one call may change several queues atomically. Where not, an all-or-nothing batch over several queues
    /// is unsupported, and a moved message travels by a relay: it is counted in the queue it leaves until it has
    /// arrived, at most one of the two hands it out, and `Judged::moved_to` stays empty.
    pub atomic_across_queues: bool,
    /// Whether it has a clock of its own, so that calls may pass `Now::Store`.
    pub store_clock: bool,
    /// Whether several instances may work on the data at a time. They tell each other what happened by [`Store::tell`] and
    /// [`Store::listen`].
    ///
    /// [`Store::tell`]: crate::Store::tell
    /// [`Store::listen`]: crate::Store::listen
    pub shared: bool,
    /// What an acknowledged write survives, by what is known of the backend now.
    pub survives: Survives,
    /// What a lease that has run out when the store opens is granted from then on.
    pub restart_grace: Millis,
}
