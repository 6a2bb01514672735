//! Points in time and spans of it, in milliseconds. There is no clock here: time is always an argument.

use std::fmt;

use crate::invalid::Invalid;

/// A span of time in milliseconds. All arithmetic saturates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Millis(u64);

impl Millis {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A span of `ms` milliseconds.
    pub const fn new(ms: u64) -> Self {
        Self(ms)
    }

    /// A span of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000))
    }

    /// A span of `days` days of 24 hours.
    pub const fn from_days(days: u64) -> Self {
        Self::from_secs(days.saturating_mul(86_400))
    }

    /// The number of milliseconds.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Refuses a span outside `min..=max`, naming `field`.
    pub fn within(self, field: &'static str, min: Self, max: Self) -> Result<Self, Invalid> {
        if (min..=max).contains(&self) { Ok(self) } else { Err(Invalid::out_of_range(field, min, max)) }
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// A point in time: milliseconds since the Unix epoch, at most [`Timestamp::MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);
    /// The last millisecond of the year 9999: it prints as RFC 3339, and it is exact as a double, which is all
    /// that Lua in Redis and JavaScript in a browser have.
    pub const MAX: Self = Self(253_402_300_799_999);

    /// The time `ms` milliseconds after the epoch, or [`Timestamp::MAX`] if that is earlier.
    pub const fn from_millis(ms: u64) -> Self {
        if ms > Self::MAX.0 { Self::MAX } else { Self(ms) }
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// This time plus `span`, at most [`Timestamp::MAX`].
    #[must_use]
    pub const fn plus(self, span: Millis) -> Self {
        Self::from_millis(self.0.saturating_add(span.0))
    }

    /// This time minus `span`, at least the epoch.
    #[must_use]
    pub const fn minus(self, span: Millis) -> Self {
        Self(self.0.saturating_sub(span.0))
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    pub const fn since(self, earlier: Self) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }
}
