//! Where the broker's time comes from, and how it waits for it.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use redrive_core::time::{Millis, Timestamp};

/// The clock that decides when something is due. It is the store's own where the store has one.
#[async_trait]
pub trait Clock: Debug + Send + Sync {
    /// What time it is. Never runs back.
    fn now(&self) -> Timestamp;

    /// Returns when it is `at`, or later.
    async fn until(&self, at: Timestamp);
}

/// A clock that stands still until somebody moves it.
#[cfg(feature = "test-clock")]
#[derive(Debug)]
pub struct ManualClock(tokio::sync::watch::Sender<Timestamp>);

#[cfg(feature = "test-clock")]
impl ManualClock {
    /// A clock that stands at that time.
    pub fn new(at: Timestamp) -> Self {
        Self(tokio::sync::watch::Sender::new(at))
    }

    /// Moves it ahead; whoever waits for a time that has come goes on.
    pub fn advance(&self, time: Millis) {
        self.0.send_modify(|now| *now = now.plus(time));
    }
}

#[cfg(feature = "test-clock")]
#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.borrow()
    }

    async fn until(&self, at: Timestamp) {
        // The sender is held here.
        drop(self.0.subscribe().wait_for(|now| *now >= at).await);
    }
}

/// Waits for some time to pass on this machine.
#[expect(clippy::disallowed_methods, reason = "the one place where the broker waits for nothing but time")]
pub async fn pause(time: Millis) {
    tokio::time::sleep(Duration::from_millis(time.get())).await;
}
