//! The lease: one consumer's right to one message until a deadline, and the token that fences it.

use std::fmt;
use std::str::FromStr;

use crate::invalid::Invalid;
use crate::limits::CONSUMER_BYTES_MAX;
use crate::text::optional_text_type;
use crate::time::Timestamp;

optional_text_type! {
    /// Who takes a lease, in the consumer's own words. Shown to people; nothing is decided by it.
    ConsumerName, field = "consumer", max = CONSUMER_BYTES_MAX
}

/// The fencing token of a lease: larger for every later lease of the same message.
///
/// The upper 16 bits are the epoch, the lower 48 a counter within it. The epoch is raised and made durable where
/// tokens that were given out may have been lost: when a store that one process owns is opened, and when a database
/// fails over. All instances of a shared store are in one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(u64);

impl LeaseId {
    /// The largest counter of an epoch.
    pub const COUNTER_MAX: u64 = (1 << 48) - 1;

    /// The token of that epoch and counter; `None` where the epoch has no token left.
    pub const fn new(epoch: u16, counter: u64) -> Option<Self> {
        if counter > Self::COUNTER_MAX { None } else { Some(Self((epoch as u64) << 48 | counter)) }
    }

    /// The token with these bits.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// All 64 bits.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The epoch it was given out in.
    pub const fn epoch(self) -> u16 {
        (self.0 >> 48) as u16
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for LeaseId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        // The standard library reads a sign, too.
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let bits = text.parse().ok().filter(|_| digits);
        bits.map(Self).ok_or_else(|| Invalid::unusable("lease_id", "must be a decimal number below 2^64"))
    }
}

/// One consumer's right to one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Its fencing token.
    pub id: LeaseId,
    /// Who took it.
    pub consumer: ConsumerName,
    /// When.
    pub leased_at: Timestamp,
    /// From when on it may be ended by `expire`. Until something does, it is current.
    pub deadline: Timestamp,
}

impl Lease {
    /// Whether it may be ended by `expire`.
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        self.deadline <= now
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_later_epoch_beats_every_counter(epoch in 0u16..u16::MAX, a in 0..=LeaseId::COUNTER_MAX, b in 0..=LeaseId::COUNTER_MAX) {
            prop_assert!(LeaseId::new(epoch, a) < LeaseId::new(epoch + 1, b));
            prop_assert_eq!(LeaseId::new(epoch, a).unwrap().epoch(), epoch);
        }

        #[test]
        fn the_token_survives_its_text(bits: u64) {
            prop_assert_eq!(LeaseId::from_bits(bits).to_string().parse(), Ok(LeaseId::from_bits(bits)));
        }
    }

    #[test]
    fn a_token_is_digits_and_nothing_else() {
        for text in ["", "+1", "-1", " 1", "1.0", "0x1", "18446744073709551616"] {
            assert_eq!(text.parse::<LeaseId>().map_err(|invalid| invalid.field), Err("lease_id"), "{text}");
        }
    }

    #[test]
    fn an_exhausted_epoch_gives_no_token() {
        assert_eq!(LeaseId::new(1, LeaseId::COUNTER_MAX + 1), None);
    }
}
