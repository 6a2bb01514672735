//! What time it is in the database, as this instance knows it between two calls.

use std::sync::Arc;

use redrive_core::time::{Millis, Timestamp};
use rustix::time::{ClockId, clock_gettime};

use crate::session::Link;

/// How long the machine has been up, sleep included. Nobody can set that clock.
pub(crate) fn uptime() -> Millis {
    let up = clock_gettime(ClockId::Boottime);
    let ms = up.tv_sec.saturating_mul(1_000).saturating_add(up.tv_nsec / 1_000_000);
    Millis::new(u64::try_from(ms).unwrap_or_default())
}

/// The clock of an open store, for timers and labels. What is decided, the database decides by its own.
#[derive(Debug, Clone)]
pub struct StoreClock(pub(crate) Arc<Link>);

impl StoreClock {
    /// What time it is. Never runs back.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }
}
