//! The one error for a value from outside that breaks a rule: it names the field, the rule and the limit.

use std::fmt::Display;

use thiserror::Error;

/// A value was refused; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {problem}")]
pub struct Invalid {
    /// The field as the APIs call it, such as `retry.multiplier`.
    pub field: &'static str,
    /// The rule it breaks.
    pub problem: Problem,
}

/// The rule that a refused value breaks.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// The value must not be empty.
    #[error("must not be empty")]
    Empty,
    /// The value is longer than its limit.
    #[error("is {actual} {unit} long, the limit is {max}")]
    TooLong {
        /// Its length.
        actual: usize,
        /// The limit.
        max: usize,
        /// What is counted, such as "bytes" or "items".
        unit: &'static str,
    },
    /// The number lies outside its range.
    #[error("must lie between {min} and {max}")]
    OutOfRange {
        /// The smallest value allowed, as a person reads it.
        min: String,
        /// The largest value allowed, as a person reads it.
        max: String,
    },
    /// A character that is not allowed there.
    #[error("byte {at} is not allowed; allowed: {allowed}")]
    BadCharacter {
        /// Offset of the first such byte.
        at: usize,
        /// What is allowed, for a person.
        allowed: &'static str,
    },
    /// The value contradicts another one, or has no meaning.
    #[error("{0}")]
    Unusable(&'static str),
}

impl Invalid {
    /// `field` breaks the rule `problem`.
    pub const fn new(field: &'static str, problem: Problem) -> Self {
        Self { field, problem }
    }

    /// `field` has a value that makes no sense, for the reason given.
    pub const fn unusable(field: &'static str, why: &'static str) -> Self {
        Self::new(field, Problem::Unusable(why))
    }

    /// `field` lies outside `min..=max`.
    pub fn out_of_range(field: &'static str, min: impl Display, max: impl Display) -> Self {
        Self::new(field, Problem::OutOfRange { min: format!("{min}"), max: format!("{max}") })
    }

    /// Refuses `actual` items of `unit` where at most `max` are allowed.
    pub fn check_length(
        field: &'static str,
        actual: usize,
        max: usize,
        unit: &'static str,
    ) -> Result<(), Self> {
        if actual > max { Err(Self::new(field, Problem::TooLong { actual, max, unit })) } else { Ok(()) }
    }
}
