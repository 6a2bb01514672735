//! When a message that always fails is tried again, by the policy itself.

use std::num::NonZeroU32;

use redrive_core::policy::{Multiplier, RetryPolicy};
use redrive_core::time::Millis;
use serde::Serialize;

/// Most attempts that are listed one by one.
pub(super) const ROWS_MAX: u32 = 50;

/// A span with the least and the most that chance makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(super) struct Band {
    #[serde(rename = "ms")]
    pub(super) usual: u64,
    #[serde(rename = "low_ms")]
    pub(super) low: u64,
    #[serde(rename = "high_ms")]
    pub(super) high: u64,
}

impl Band {
    fn after(policy: &RetryPolicy, failed: u32) -> Self {
        let usual = policy.delay(failed);
        let (low, high) = policy.jitter.band(usual, policy.longest());
        Self { usual: usual.get(), low: low.get(), high: high.get() }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            usual: self.usual.saturating_add(other.usual),
            low: self.low.saturating_add(other.low),
            high: self.high.saturating_add(other.high),
        }
    }

    fn times(self, times: u32) -> Self {
        let times = u64::from(times);
        Self {
            usual: self.usual.saturating_mul(times),
            low: self.low.saturating_mul(times),
            high: self.high.saturating_mul(times),
        }
    }
}

/// One attempt of a message that always fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    pub(super) attempt: u32,
    /// When it starts, counted from the first failure. Attempts themselves take no time here.
    pub(super) starts: Band,
    /// How long it waits after it failed; `None` where it is dead.
    pub(super) delay: Option<Band>,
}

/// What becomes of a message that always fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Schedule {
    pub(super) max_attempts: Option<NonZeroU32>,
    /// The first attempts, at most [`ROWS_MAX`].
    pub(super) attempts: Vec<Row>,
    /// How many more there are; `None` is without end.
    pub(super) more: Option<u32>,
    /// How long after the first failure it is dead; `None` is never.
    pub(super) dead_after: Option<Band>,
}

impl Schedule {
    pub(super) fn of(policy: &RetryPolicy) -> Self {
        let last = policy.max_attempts.map_or(u32::MAX, NonZeroU32::get);
        let mut starts = Band::default();
        let mut attempts = Vec::new();
        for attempt in 1..=last.min(ROWS_MAX) {
            let delay = (attempt < last).then(|| Band::after(policy, attempt));
            attempts.push(Row { attempt, starts, delay });
            starts = starts.plus(delay.unwrap_or_default());
        }
        Self {
            max_attempts: policy.max_attempts,
            attempts,
            more: policy.max_attempts.map(|max| max.get().saturating_sub(ROWS_MAX)),
            dead_after: policy.max_attempts.map(|max| total(policy, max.get())),
        }
    }
}

/// All delays before attempt `last`. They grow until they are as long as they get; from there on they are alike, and a
/// policy with four thousand million attempts is summed up as quickly as any.
fn total(policy: &RetryPolicy, last: u32) -> Band {
    let mut sum = Band::default();
    for failed in 1..last {
        let band = Band::after(policy, failed);
        if is_longest(policy, Millis::new(band.usual)) {
            return sum.plus(band.times(last - failed));
        }
        sum = sum.plus(band);
    }
    sum
}

fn is_longest(policy: &RetryPolicy, delay: Millis) -> bool {
    delay == policy.longest() || delay == Millis::ZERO || policy.multiplier == Multiplier::ONE
}
