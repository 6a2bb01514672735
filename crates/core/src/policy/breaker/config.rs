//! What an operator may set of a breaker.

use crate::invalid::Invalid;
use crate::limits::BREAKER_WINDOW_MESSAGES_MAX;
use crate::time::Millis;

/// The shortest span a breaker works with: below it, a breaker would measure the network's jitter.
const SPAN_MIN: Millis = Millis::new(100);
/// The longest window and the longest reservation of a probe.
const WINDOW_MAX: Millis = Millis::from_secs(3_600);
/// The longest time that a breaker stays open without trying a probe.
const OPEN_MAX: Millis = Millis::from_days(1);
/// The largest share that can still be exceeded.
const SHARE_PERMILLE_MAX: u32 = 999;

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerConfig {
    /// How long an outcome counts.
    pub window: Millis,
    /// Fewer messages than this in the window never open it.
    pub min_messages: u32,
    /// It opens when more than this share of the messages failed, in thousandths.
    pub failure_share_permille: u32,
    /// How long nothing is handed out before a probe is tried.
    pub open_for: Millis,
    /// How long a reserved probe slot may wait for its lease before it counts as forgotten.
    pub probe_timeout: Millis,
}

impl BreakerConfig {
    /// Refuses a breaker that never opens, never closes, or that a single poison message could open.
    pub fn check(&self) -> Result<(), Invalid> {
        self.window.within("breaker.window", SPAN_MIN, WINDOW_MAX)?;
        self.open_for.within("breaker.open_for", SPAN_MIN, OPEN_MAX)?;
        self.probe_timeout.within("breaker.probe_timeout", SPAN_MIN, WINDOW_MAX)?;
        let messages_max = u32::try_from(BREAKER_WINDOW_MESSAGES_MAX).unwrap_or(u32::MAX);
        if !(2..=messages_max).contains(&self.min_messages) {
            return Err(Invalid::out_of_range("breaker.min_messages", 2, messages_max));
        }
        if !(1..=SHARE_PERMILLE_MAX).contains(&self.failure_share_permille) {
            return Err(Invalid::out_of_range(
                "breaker.failure_share",
                "1 ‰",
                format!("{SHARE_PERMILLE_MAX} ‰"),
            ));
        }
        if self.exceeded(1, self.min_messages) {
            let why = "one failing message could open the breaker: raise failure_share or min_messages";
            return Err(Invalid::unusable("breaker.failure_share", why));
        }
        Ok(())
    }

    /// Whether `failed` of `messages` is more than the share allowed.
    pub(super) fn exceeded(&self, failed: u32, messages: u32) -> bool {
        u64::from(failed) * 1_000 > u64::from(self.failure_share_permille) * u64::from(messages)
    }
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            window: Millis::from_secs(60),
            min_messages: 4,
            failure_share_permille: 500,
            open_for: Millis::from_secs(30),
            probe_timeout: Millis::from_secs(30),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_valid() {
        assert_eq!(BreakerConfig::default().check(), Ok(()));
    }

    #[test]
    fn a_wrong_setting_is_refused_by_its_name() {
        let good = BreakerConfig::default();
        let cases = [
            (BreakerConfig { window: Millis::ZERO, ..good }, "breaker.window"),
            (BreakerConfig { window: Millis::from_days(1), ..good }, "breaker.window"),
            (BreakerConfig { open_for: Millis::ZERO, ..good }, "breaker.open_for"),
            (BreakerConfig { open_for: Millis::from_days(2), ..good }, "breaker.open_for"),
            (BreakerConfig { probe_timeout: Millis::ZERO, ..good }, "breaker.probe_timeout"),
            (BreakerConfig { min_messages: 1, ..good }, "breaker.min_messages"),
            (BreakerConfig { min_messages: 5_000, ..good }, "breaker.min_messages"),
            (BreakerConfig { failure_share_permille: 0, ..good }, "breaker.failure_share"),
            (BreakerConfig { failure_share_permille: 1_000, ..good }, "breaker.failure_share"),
        ];
        for (config, field) in cases {
            assert_eq!(config.check().unwrap_err().field, field, "{config:?}");
        }
    }

    #[test]
    fn a_share_that_one_poison_message_exceeds_is_refused() {
        let config = BreakerConfig { failure_share_permille: 249, ..BreakerConfig::default() };
        assert_eq!(config.check().unwrap_err().field, "breaker.failure_share");
        assert_eq!(BreakerConfig { failure_share_permille: 250, ..config }.check(), Ok(()));
        assert_eq!(BreakerConfig { min_messages: 5, ..config }.check(), Ok(()));
    }
}
