//! The store's own time: it starts at the wall clock and then follows a clock that nobody can set.

use std::fmt::Debug;
use std::time::{Duration, SystemTime};

use redrive_core::time::{Millis, Timestamp};
use rustix::time::{ClockId, clock_gettime};

/// Where time comes from.
pub trait Clock: Debug + Send + Sync {
    /// What the wall clock says. It may be set at any moment, so it is asked once, when the store opens.
    fn wall(&self) -> Timestamp;

    /// How long the machine has been up, sleep included. Never runs back while the process lives.
    fn uptime(&self) -> Millis;
}

/// The clocks of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachineClock;

impl Clock for MachineClock {
    fn wall(&self) -> Timestamp {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the clock that the others are told the time by"
        )]
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Timestamp::from_millis(millis(since_epoch.unwrap_or_default()))
    }

    fn uptime(&self) -> Millis {
        let time = clock_gettime(ClockId::Boottime);
        let (secs, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
        Millis::new(millis(Duration::new(secs.unwrap_or_default(), nanos.unwrap_or_default())))
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
