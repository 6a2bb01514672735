//! The name of a message.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::invalid::Invalid;
use crate::time::Timestamp;

/// A `UUIDv7`: sortable by the time it was made. Unique within a queue; the address of a message is queue and id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(Uuid);

impl MessageId {
    /// The smallest id, before every id that [`MessageId::new`] makes.
    pub const MIN: Self = Self(Uuid::nil());

    /// Builds an id from the time and 74 random bits; both are arguments so that a run can be replayed.
    pub fn new(at: Timestamp, random: u128) -> Self {
        const VERSION: u128 = 7 << 76;
        const VARIANT: u128 = 2 << 62;
        let time = u128::from(at.as_millis() & 0xFFFF_FFFF_FFFF) << 80;
        let upper = (random >> 64 & 0xFFF) << 64;
        let lower = random & 0x3FFF_FFFF_FFFF_FFFF;
        Self(Uuid::from_u128(time | VERSION | upper | VARIANT | lower))
    }

    /// When it was made, as far as it says so: one that somebody brought along may say anything.
    pub fn made_at(&self) -> Timestamp {
        let ms = u64::try_from(self.0.as_u128() >> 80).unwrap_or(u64::MAX);
        Timestamp::from_millis(ms)
    }

    /// The id with these sixteen bytes. Any UUID is accepted: imports bring their own.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// The sixteen bytes of the id, in the order in which ids sort.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

impl FromStr for MessageId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Uuid::try_parse(text).map(Self).map_err(|_| Invalid::unusable("id", "must be a UUID"))
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ids_are_version_7_and_sort_by_time(early in 0u64..1 << 40, later in 1u64..1 << 40, a: u128, b: u128) {
            let first = MessageId::new(Timestamp::from_millis(early), a);
            let second = MessageId::new(Timestamp::from_millis(early + later), b);
            prop_assert_eq!(first.made_at(), Timestamp::from_millis(early));
            prop_assert!(first < second);
            prop_assert_eq!(first.to_string().as_bytes()[14], b'7');
            prop_assert_eq!(first.to_string().parse::<MessageId>(), Ok(first));
        }

        #[test]
        fn no_text_panics_the_parser(text: String) {
            let parsed = text.parse::<MessageId>();
            prop_assert!(parsed.is_ok() || parsed.unwrap_err().field == "id");
        }
    }
}
