//! Waiting for nothing but time: a server that is down gives no signal when it is back.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// Pauses that grow, each of them between a half and the whole of its length, so that those who failed together do not
/// come back together.
#[derive(Debug)]
pub struct Pauses {
    next: Duration,
    longest: Duration,
}

impl Pauses {
    /// From the first pause up to the longest.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { next: first, longest }
    }

    /// Waits, and longer the next time; answers how long at the most.
    pub async fn wait(&mut self) -> Duration {
        let whole = self.next;
        self.next = (whole * 2).min(self.longest);
        // What a thread's hasher begins with is as random as a pause has to be.
        let chance = RandomState::new().build_hasher().finish() % 1_000;
        pause(whole / 2 + whole.mul_f64(f64::from(u32::try_from(chance).unwrap_or(0)) / 2_000.0)).await;
        whole
    }
}

#[expect(clippy::disallowed_methods, reason = "a server that is down gives no signal when it is back")]
async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
