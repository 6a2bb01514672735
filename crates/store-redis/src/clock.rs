//! What time it is at the server, as this instance knows it between two calls.
//!
//! In a cluster it is the time of the node that has the record of the store. What is decided in a queue is decided by the clock
//! of its own node; where that is behind, a timer asks a little too early, and again.

use std::sync::Arc;

use redrive_core::time::{Millis, Timestamp};
use redrive_store::Now;
use rustix::time::{ClockId, clock_gettime};

use crate::error::Fault;
use crate::link::Link;
use crate::reply::Reply;
use crate::store::Shared;

/// How long the machine has been up, sleep included. Nobody can set that clock.
pub(crate) fn uptime() -> Millis {
    let up = clock_gettime(ClockId::Boottime);
    let ms = up.tv_sec.saturating_mul(1_000).saturating_add(up.tv_nsec / 1_000_000);
    Millis::new(u64::try_from(ms).unwrap_or_default())
}

/// The clock of an open store, for timers and labels. What is decided, the server decides by its own.
#[derive(Debug, Clone)]
pub struct StoreClock(pub(crate) Arc<Shared>);

impl StoreClock {
    /// What time it is. Never runs back.
    pub fn now(&self) -> Timestamp {
        self.0.known_clock.now()
    }
}

impl Link {
    /// What time it is at the node that has the record of the store.
    pub(crate) async fn time(&self) -> Result<Timestamp, Fault> {
        let answer = self.send(&self.keys.store(), &redis::cmd("TIME"), false).await?;
        Ok(read_time(Reply::of(answer)?)?)
    }
}

/// What `TIME` answers: seconds, and microseconds beyond them.
pub(crate) fn read_time(mut time: Reply) -> Result<Timestamp, redrive_store::StoreError> {
    let (seconds, micros) = (time.number()?, time.number()?);
    Ok(Timestamp::from_millis(seconds.saturating_mul(1_000).saturating_add(micros / 1_000)))
}

impl Shared {
    /// The time of a call.
    pub(crate) async fn clock(&self, now: Now) -> Result<Timestamp, Fault> {
        match now {
            Now::At(at) => Ok(self.no_earlier(at)),
            Now::Store => {
                let at = self.link.time().await?;
                self.known_clock.saw(at);
                Ok(at)
            }
        }
    }

    /// A script answers that it was this time in a queue. The clocks of other nodes of a cluster are not followed.
    pub(crate) fn saw(&self, now: Now, at: Timestamp) {
        if now == Now::Store && !self.link.cluster {
            self.known_clock.saw(at);
        }
    }
}
