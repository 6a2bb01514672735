//! Randomness as an argument: a small generator that the caller seeds, so that every choice can be replayed.

use crate::message::MessageId;

/// `SplitMix64`: passes `BigCrush`, needs eight bytes and no crate. Not for secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dice(u64);

impl Dice {
    /// Dice that always roll the same sequence for the same seed.
    pub const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// Dice for one of many attempts judged by one request. Items of a batch must not share a roll, or a
    /// thousand messages that fail together come back together. The same attempt rolls the same in every store.
    pub fn for_attempt(seed: u64, message: MessageId, attempts: u32) -> Self {
        let id = u128::from_be_bytes(*message.as_bytes());
        #[expect(clippy::cast_possible_truncation, reason = "both halves are mixed in")]
        let (upper, lower) = ((id >> 64) as u64, id as u64);
        Self(mix(seed ^ mix(upper ^ mix(lower ^ mix(u64::from(attempts))))))
    }

    /// The next 64 random bits.
    pub const fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A uniform number in `low..=high`; `low` where the range is empty.
    ///
    /// Multiply and shift instead of modulo: the bias is below 2⁻³² for every range of a delay.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        let width = u128::from(high.saturating_sub(low)) + 1;
        let offset = (u128::from(self.roll()) * width) >> 64;
        low.saturating_add(u64::try_from(offset).expect("offset < width <= 2^64"))
    }
}

const fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_roll_stays_in_its_range(seed: u64, a: u64, b: u64) {
            let (low, high) = (a.min(b), a.max(b));
            let rolled = Dice::seeded(seed).between(low, high);
            prop_assert!((low..=high).contains(&rolled));
        }
    }

    #[test]
    fn an_empty_range_gives_its_lower_end() {
        assert_eq!(Dice::seeded(1).between(9, 3), 9);
    }

    #[test]
    fn both_ends_of_a_range_occur() {
        let mut dice = Dice::seeded(7);
        let rolls: std::collections::BTreeSet<u64> = (0..200).map(|_| dice.between(5, 8)).collect();
        assert_eq!(rolls, std::collections::BTreeSet::from([5, 6, 7, 8]));
    }

    #[test]
    fn attempts_of_one_request_roll_differently() {
        let id = |n: u32| MessageId::new(crate::time::Timestamp::EPOCH, u128::from(n % 100));
        let rolls: std::collections::BTreeSet<u64> =
            (0..1_000).map(|n| Dice::for_attempt(42, id(n), n / 100).roll()).collect();
        assert_eq!(rolls.len(), 1_000);
    }
}
