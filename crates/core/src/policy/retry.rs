//! The retry policy: how often, how long between, and how much chance in it.

use std::fmt;
use std::num::NonZeroU32;

use crate::dice::Dice;
use crate::invalid::Invalid;
use crate::limits::{DELAY_MAX, MULTIPLIER_MAX};
use crate::time::Millis;

/// By how much the delay grows from one attempt to the next: 1 to 1,000, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Multiplier(u32);

impl Multiplier {
    /// The delay stays the same.
    pub const ONE: Self = Self(1_000);
    /// The delay doubles.
    pub const TWO: Self = Self(2_000);

    /// Refuses shrinking delays, NaN and anything above [`MULTIPLIER_MAX`]; rounds to thousandths.
    pub fn new(factor: f64) -> Result<Self, Invalid> {
        if (1.0..=f64::from(MULTIPLIER_MAX)).contains(&factor) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1..=1_000_000 fits")]
            Ok(Self((factor * 1_000.0).round() as u32))
        } else {
            Err(Invalid::out_of_range("retry.multiplier", 1, MULTIPLIER_MAX))
        }
    }

    /// The multiplier in thousandths, as it is stored.
    pub const fn thousandths(self) -> u32 {
        self.0
    }

    /// The stored multiplier again.
    pub fn from_thousandths(thousandths: u32) -> Result<Self, Invalid> {
        Self::new(f64::from(thousandths) / 1_000.0)
    }

    fn factor(self) -> f64 {
        f64::from(self.0) / 1_000.0
    }
}

impl fmt::Display for Multiplier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.factor())
    }
}

/// How chance spreads retries that would otherwise come back together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Jitter {
    /// Not at all.
    None,
    /// Evenly between the delay minus and plus this many thousandths of it.
    Proportional(u16),
    /// Evenly between nothing and the delay.
    Full,
}

impl Jitter {
    /// Plus or minus `share` of the delay, `0.0` to `1.0`, rounded to thousandths.
    pub fn proportional(share: f64) -> Result<Self, Invalid> {
        if (0.0..=1.0).contains(&share) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0..=1_000 fits")]
            Ok(Self::Proportional((share * 1_000.0).round() as u16))
        } else {
            Err(Invalid::out_of_range("retry.jitter", 0, 1))
        }
    }

    /// The shortest and the longest delay it makes of `delay`, where none may be longer than `max`.
    ///
    /// At the cap the upper half of the band is cut off, not folded onto the cap: a herd that waits exactly the
    /// longest delay would come back together.
    pub fn band(self, delay: Millis, max: Millis) -> (Millis, Millis) {
        let (low, high) = match self {
            Self::None => (delay.get(), delay.get()),
            Self::Proportional(share) => {
                let swing = u128::from(delay.get()) * u128::from(share.min(1_000)) / 1_000;
                let swing = u64::try_from(swing).expect("at most the delay");
                (delay.get() - swing, delay.get().saturating_add(swing))
            }
            Self::Full => (0, delay.get()),
        };
        (Millis::new(low).min(max), Millis::new(high).min(max))
    }
}

/// When to retry what failed, and when to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RetryPolicy {
    /// Charged deliveries at most, the first included; `None` is no cap.
    pub max_attempts: Option<NonZeroU32>,
    /// The delay after the first attempt failed; zero is an immediate requeue for ever.
    pub base_delay: Millis,
    /// By how much the delay grows with each attempt.
    pub multiplier: Multiplier,
    /// No backoff is longer than this; `None` leaves only [`DELAY_MAX`].
    pub max_delay: Option<Millis>,
    /// How chance spreads the delays.
    pub jitter: Jitter,
}

impl Default for RetryPolicy {
    /// What queues do unless told otherwise: three attempts, one second doubling up to thirty, ± 10 %.
    fn default() -> Self {
        Self {
            max_attempts: NonZeroU32::new(3),
            base_delay: Millis::from_secs(1),
            multiplier: Multiplier::TWO,
            max_delay: Some(Millis::from_secs(30)),
            jitter: Jitter::Proportional(100),
        }
    }
}

impl RetryPolicy {
    /// Refuses delays beyond [`DELAY_MAX`].
    pub fn check(&self) -> Result<(), Invalid> {
        self.base_delay.within("retry.base_delay", Millis::ZERO, DELAY_MAX)?;
        if let Some(max_delay) = self.max_delay {
            max_delay.within("retry.max_delay", Millis::ZERO, DELAY_MAX)?;
        }
        Ok(())
    }

    /// The longest backoff of this policy.
    pub fn longest(&self) -> Millis {
        self.max_delay.unwrap_or(DELAY_MAX).min(DELAY_MAX)
    }

    /// The delay after attempt `failed` failed (1, 2, …), before jitter:
    /// `min(base_delay * multiplier^(failed - 1), max_delay)`.
    ///
    /// In floating point the power of a huge attempt number is infinite instead of wrong, and the cast back
    /// saturates; for the delays people write it is exact.
    pub fn delay(&self, failed: u32) -> Millis {
        let longest = self.longest();
        if self.base_delay == Millis::ZERO {
            return Millis::ZERO;
        }
        let exponent = f64::from(failed.saturating_sub(1));
        #[expect(clippy::cast_precision_loss, reason = "a delay is at most DELAY_MAX, which is exact")]
        let base = self.base_delay.min(DELAY_MAX).get() as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates")]
        let grown = (base * self.multiplier.factor().powf(exponent)) as u64;
        Millis::new(grown).min(longest)
    }

    /// Whether there is no retry after that many attempts.
    pub fn is_spent(&self, attempts: u32) -> bool {
        self.max_attempts.is_some_and(|max| attempts >= max.get())
    }

    /// The shortest and the longest delay after attempt `failed` failed, with jitter.
    pub fn band(&self, failed: u32) -> (Millis, Millis) {
        self.jitter.band(self.delay(failed), self.longest())
    }

    /// The delay after attempt `failed` failed, with jitter.
    pub fn jittered(&self, failed: u32, dice: &mut Dice) -> Millis {
        let (low, high) = self.band(failed);
        Millis::new(dice.between(low.get(), high.get()))
    }
}

/// The fields of a policy that somebody set; what nobody set comes from a default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RetryOverride {
    /// `Some(None)` is no cap, `None` is not set.
    pub max_attempts: Option<Option<NonZeroU32>>,
    /// See [`RetryPolicy::base_delay`].
    pub base_delay: Option<Millis>,
    /// See [`RetryPolicy::multiplier`].
    pub multiplier: Option<Multiplier>,
    /// `Some(None)` is no limit, `None` is not set.
    pub max_delay: Option<Option<Millis>>,
    /// See [`RetryPolicy::jitter`].
    pub jitter: Option<Jitter>,
}

impl RetryOverride {
    /// The policy that has every field set here, and the rest from `default`.
    pub fn over(&self, default: RetryPolicy) -> RetryPolicy {
        RetryPolicy {
            max_attempts: self.max_attempts.unwrap_or(default.max_attempts),
            base_delay: self.base_delay.unwrap_or(default.base_delay),
            multiplier: self.multiplier.unwrap_or(default.multiplier),
            max_delay: self.max_delay.unwrap_or(default.max_delay),
            jitter: self.jitter.unwrap_or(default.jitter),
        }
    }

    /// One override that is as permissive as the most permissive of two, field by field: the most attempts, the
    /// shortest base delay, the longest maximum, the largest multiplier; no cap beats any cap. A field that only
    /// one side sets is taken from that side, so that a default never undoes what somebody set lower on purpose.
    #[must_use]
    pub fn most_permissive(self, other: Self) -> Self {
        Self {
            max_attempts: merge(self.max_attempts, other.max_attempts, largest_or_none),
            base_delay: merge(self.base_delay, other.base_delay, Ord::min),
            multiplier: merge(self.multiplier, other.multiplier, Ord::max),
            max_delay: merge(self.max_delay, other.max_delay, largest_or_none),
            jitter: self.jitter.or(other.jitter),
        }
    }
}

fn merge<T>(one: Option<T>, other: Option<T>, both: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(both(one, other)),
        (one, other) => one.or(other),
    }
}

fn largest_or_none<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    Some(one?.max(other?))
}

#[cfg(test)]
pub(crate) mod tests;
