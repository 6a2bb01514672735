//! The clocks of a broker in this process.

use async_trait::async_trait;
use redrive_broker::{Clock, pause};
use redrive_core::time::{Millis, Timestamp};
use redrive_store_embedded::{Clock as _, MachineClock, StoreClock};

/// The longest sleep: a machine that was suspended looks at the clock again.
const SLEEP_MAX: Millis = Millis::from_secs(60);

/// The clock of an embedded store.
#[derive(Debug)]
pub(crate) struct EmbeddedClock(pub(crate) StoreClock);

/// The machine's clock, for a store without one.
#[derive(Debug)]
pub(crate) struct WallClock;

async fn sleep_until(at: Timestamp, now: impl Fn() -> Timestamp + Send) {
    loop {
        let left = at.since(now());
        if left == Millis::ZERO {
            return;
        }
        pause(left.min(SLEEP_MAX)).await;
    }
}

#[async_trait]
impl Clock for EmbeddedClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    async fn until(&self, at: Timestamp) {
        sleep_until(at, || self.0.now()).await;
    }
}

#[async_trait]
impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        MachineClock.wall()
    }

    async fn until(&self, at: Timestamp) {
        sleep_until(at, || self.now()).await;
    }
}
