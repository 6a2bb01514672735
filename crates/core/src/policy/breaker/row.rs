//! What the instances on one store must agree on: whether the breaker is open, and whose the probe is.
//!
//! Seventy-four bytes, always: version, flags, then each field at its place, big-endian, zero where absent.
//! Equal rows have equal bytes, since a store compares bytes before it swaps.

// What is read here came from outside.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use crate::invalid::Invalid;
use crate::message::MessageId;
use crate::time::Timestamp;

const FIELD: &str = "breaker_row";
const VERSION: u8 = 1;
const IS_OPEN: u8 = 1;
const HAS_LAST_PROBE: u8 = 1 << 1;
const HAS_PROBE: u8 = 1 << 2;
const PROBE_IS_LEASED: u8 = 1 << 3;

/// The part of a breaker that one compare-and-set row carries. The default is a breaker that never opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BreakerRow {
    /// Open until then, half-open afterwards; closed where there is none.
    pub open_until: Option<Timestamp>,
    /// The probe slot, also when its time has passed: its late outcome still counts until another takes it.
    pub probe: Option<ProbeSlot>,
    /// The highest ticket number given out. Without it a freed slot would let numbers start over, and an old
    /// ticket could free a new probe.
    pub last_ticket: u64,
    /// The message probed last, so that every instance avoids choosing it again.
    pub last_probe: Option<MessageId>,
}

/// The one place for a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeSlot {
    /// The number of the ticket that took it.
    pub ticket: u64,
    /// The instance that took it. Two instances may draw the same number at once; only one wins the swap.
    pub holder: u64,
    /// Free for others from then on.
    pub until: Timestamp,
    /// The probe, once leased. Any instance may hear its outcome: consumers settle where they please.
    pub message: Option<MessageId>,
}

impl BreakerRow {
    /// Length of the encoding.
    pub const BYTES: usize = 74;

    /// The row as a store keeps it.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let (open, last, probe) = (self.open_until, self.last_probe, self.probe);
        let leased = probe.and_then(|slot| slot.message);
        let flags = flag(IS_OPEN, open.is_some())
            | flag(HAS_LAST_PROBE, last.is_some())
            | flag(HAS_PROBE, probe.is_some())
            | flag(PROBE_IS_LEASED, leased.is_some());
        let mut bytes = [0; Self::BYTES];
        let mut out = Writer(&mut bytes);
        out.put([VERSION, flags]);
        out.put(open.map_or([0; 8], |at| at.as_millis().to_be_bytes()));
        out.put(self.last_ticket.to_be_bytes());
        out.put(last.map_or([0; 16], |id| *id.as_bytes()));
        out.put(probe.map_or([0; 8], |slot| slot.ticket.to_be_bytes()));
        out.put(probe.map_or([0; 8], |slot| slot.holder.to_be_bytes()));
        out.put(probe.map_or([0; 8], |slot| slot.until.as_millis().to_be_bytes()));
        out.put(leased.map_or([0; 16], |id| *id.as_bytes()));
        bytes
    }

    /// Reads a row back; anything that [`BreakerRow::to_bytes`] cannot have written is refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Invalid> {
        let row = Self::decode(bytes).ok_or(Invalid::unusable(FIELD, "is not a breaker row of version 1"))?;
        if row.to_bytes() != bytes {
            return Err(Invalid::unusable(FIELD, "has bytes set that no breaker writes"));
        }
        if row.open_until.is_none() && row.probe.is_some() {
            return Err(Invalid::unusable(FIELD, "has a probe although it is closed"));
        }
        Ok(row)
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Reader(bytes);
        let [version, flags] = input.take()?;
        let has = |bit| flags & bit != 0;
        let open_until = input.time()?;
        let last_ticket = input.number()?;
        let last_probe = input.message()?;
        let (ticket, holder, until) = (input.number()?, input.number()?, input.time()?);
        let message = input.message()?;
        let slot = ProbeSlot { ticket, holder, until, message: has(PROBE_IS_LEASED).then_some(message) };
        let row = Self {
            open_until: has(IS_OPEN).then_some(open_until),
            probe: has(HAS_PROBE).then_some(slot),
            last_ticket,
            last_probe: has(HAS_LAST_PROBE).then_some(last_probe),
        };
        (version == VERSION && input.0.is_empty()).then_some(row)
    }
}

const fn flag(bit: u8, set: bool) -> u8 {
    if set { bit } else { 0 }
}

/// Fills a buffer from the front; what does not fit is left out, which the round-trip test would show.
struct Writer<'a>(&'a mut [u8]);

impl Writer<'_> {
    fn put<const N: usize>(&mut self, field: [u8; N]) {
        if let Some((place, rest)) = std::mem::take(&mut self.0).split_first_chunk_mut::<N>() {
            *place = field;
            self.0 = rest;
        }
    }
}

/// Takes fields from the front; nothing where the bytes have run out.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn time(&mut self) -> Option<Timestamp> {
        self.number().map(Timestamp::from_millis)
    }

    fn message(&mut self) -> Option<MessageId> {
        self.take().map(MessageId::from_bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn a_time() -> impl Strategy<Value = Timestamp> {
        (0..=Timestamp::MAX.as_millis()).prop_map(Timestamp::from_millis)
    }

    fn a_message() -> impl Strategy<Value = MessageId> {
        any::<[u8; 16]>().prop_map(MessageId::from_bytes)
    }

    fn a_slot() -> impl Strategy<Value = ProbeSlot> {
        (any::<u64>(), any::<u64>(), a_time(), prop::option::of(a_message()))
            .prop_map(|(ticket, holder, until, message)| ProbeSlot { ticket, holder, until, message })
    }

    prop_compose! {
        fn a_row()(
            open_until in prop::option::of(a_time()),
            slot in prop::option::of(a_slot()),
            last_ticket: u64,
            last_probe in prop::option::of(a_message()),
        ) -> BreakerRow {
            BreakerRow { open_until, probe: open_until.and(slot), last_ticket, last_probe }
        }
    }

    proptest! {
        #[test]
        fn a_row_survives_its_encoding(row in a_row()) {
            prop_assert_eq!(BreakerRow::from_bytes(&row.to_bytes()), Ok(row));
        }

        #[test]
        fn different_rows_have_different_bytes(a in a_row(), b in a_row()) {
            prop_assert_eq!(a == b, a.to_bytes() == b.to_bytes());
        }

        #[test]
        fn any_bytes_are_read_or_refused_by_name(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            match BreakerRow::from_bytes(&bytes) {
                Ok(row) => prop_assert_eq!(row.to_bytes().to_vec(), bytes),
                Err(refused) => prop_assert_eq!(refused.field, "breaker_row"),
            }
        }

        #[test]
        fn a_changed_byte_is_another_row(row in a_row(), at in 0..BreakerRow::BYTES, change in 1u8..) {
            let mut bytes = row.to_bytes();
            bytes[at] ^= change;
            prop_assert_ne!(BreakerRow::from_bytes(&bytes), Ok(row));
        }

        #[test]
        fn a_row_that_is_cut_or_continued_is_refused(row in a_row(), cut in 0..BreakerRow::BYTES) {
            let bytes = row.to_bytes();
            prop_assert!(BreakerRow::from_bytes(&bytes[..cut]).is_err());
            prop_assert!(BreakerRow::from_bytes(&[bytes.as_slice(), &[0]].concat()).is_err());
        }
    }

    #[test]
    fn the_layout_is_pinned_because_rows_outlive_the_process() {
        let slot = ProbeSlot {
            ticket: 7,
            holder: 0xAB,
            until: Timestamp::from_millis(0x0102),
            message: Some(MessageId::from_bytes([0x22; 16])),
        };
        let row = BreakerRow {
            open_until: Some(Timestamp::from_millis(0x0304)),
            probe: Some(slot),
            last_ticket: 9,
            last_probe: Some(MessageId::from_bytes([0x11; 16])),
        };
        let expected: Vec<u8> = [
            &[1, 0b1111][..],
            &[0, 0, 0, 0, 0, 0, 3, 4],
            &[0, 0, 0, 0, 0, 0, 0, 9],
            &[0x11; 16],
            &[0, 0, 0, 0, 0, 0, 0, 7],
            &[0, 0, 0, 0, 0, 0, 0, 0xAB],
            &[0, 0, 0, 0, 0, 0, 1, 2],
            &[0x22; 16],
        ]
        .concat();
        assert_eq!(row.to_bytes().as_slice(), expected);
    }

    #[test]
    fn a_closed_row_with_a_probe_is_refused() {
        let slot = ProbeSlot { ticket: 1, holder: 0, until: Timestamp::EPOCH, message: None };
        let row = BreakerRow { probe: Some(slot), ..BreakerRow::default() };
        assert!(BreakerRow::from_bytes(&row.to_bytes()).is_err());
    }
}
