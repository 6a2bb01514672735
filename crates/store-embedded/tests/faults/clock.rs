//! A clock that only the test moves.

use std::sync::atomic::{AtomicU64, Ordering};

use redrive_core::time::{Millis, Timestamp};
use redrive_store_embedded::Clock;

/// When every history begins.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// Milliseconds since [`START`].
#[derive(Debug, Default)]
pub(crate) struct TestClock(AtomicU64);

impl TestClock {
    pub(crate) fn advance(&self, span: Millis) {
        self.0.fetch_add(span.get(), Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn wall(&self) -> Timestamp {
        START.plus(self.uptime())
    }

    fn uptime(&self) -> Millis {
        Millis::new(self.0.load(Ordering::SeqCst))
    }
}
