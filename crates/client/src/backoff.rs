//! How long to wait before another try: longer after every failure, never the same for two clients.

use std::time::Duration;

/// Waits between tries.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    base: Duration,
    max: Duration,
    failures: u32,
}

impl Backoff {
    /// From `base`, doubled after every failure, up to `max`.
    pub(crate) fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, failures: 0 }
    }

    /// Something worked: the next wait is a short one.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// The next wait: between half of it and all of it, so that clients that lost one server do not come back together.
    pub(crate) fn next(&mut self) -> Duration {
        // Without randomness they come back together, which is better than not at all.
        let chance = getrandom::u64().unwrap_or(u64::MAX);
        self.next_with(chance)
    }

    fn next_with(&mut self, chance: u64) -> Duration {
        let factor = 1u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        let full = self.base.saturating_mul(factor).min(self.max);
        self.failures = self.failures.saturating_add(1);
        #[expect(clippy::cast_precision_loss, reason = "a share of a wait needs no 64 bits")]
        let share = chance as f64 / u64::MAX as f64;
        full.mul_f64(0.5 + share / 2.0)
    }

    /// Waits that long.
    pub(crate) async fn wait(&mut self) {
        let until = tokio::time::Instant::now() + self.next();
        tokio::time::sleep_until(until).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound_and_start_again() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
        let waits: Vec<u128> = (0..8).map(|_| backoff.next_with(u64::MAX).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        for _ in 0..100 {
            assert!(backoff.next() <= Duration::from_secs(5));
        }
        backoff.reset();
        assert_eq!(backoff.next_with(0), Duration::from_millis(50));
    }
}
