//! How numbers and texts are written, and read back without trust.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use redrive_core::time::{Millis, Timestamp};

use super::{Malformed, Place};

/// Writes at the end of a buffer.
pub(crate) trait Put {
    fn put(&mut self, bytes: &[u8]);

    fn put_u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    fn put_time(&mut self, at: Timestamp) {
        self.put_u64(at.as_millis());
    }

    fn put_place(&mut self, place: Place) {
        self.put_u64(place.bits());
    }

    /// A short text, or bytes below 64 KiB.
    fn put_short(&mut self, bytes: &[u8]) {
        self.put_u16(u16::try_from(bytes.len()).expect("every short text has a limit far below 64 KiB"));
        self.put(bytes);
    }

    /// Bytes below 4 GiB.
    fn put_long(&mut self, bytes: &[u8]) {
        self.put_u32(size(bytes.len()));
        self.put(bytes);
    }

    fn put_option<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Self, T))
    where
        Self: Sized,
    {
        self.put_u8(u8::from(value.is_some()));
        if let Some(value) = value {
            put(self, value);
        }
    }
}

impl Put for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// A length as it is written.
pub(crate) fn size(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a frame is far below 4 GiB")
}

/// Reads from the front of some bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Take<'a>(pub(crate) &'a [u8]);

impl<'a> Take<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed("a record ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed("a record ends too early"))?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn u128(&mut self) -> Result<u128, Malformed> {
        self.array().map(u128::from_be_bytes)
    }

    pub(crate) fn time(&mut self) -> Result<Timestamp, Malformed> {
        self.u64().map(Timestamp::from_millis)
    }

    pub(crate) fn millis(&mut self) -> Result<Millis, Malformed> {
        self.u64().map(Millis::new)
    }

    pub(crate) fn place(&mut self) -> Result<Place, Malformed> {
        self.u64().map(Place::from_bits)
    }

    pub(crate) fn short(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.u16()?;
        self.bytes(usize::from(length))
    }

    pub(crate) fn long(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.u32()?;
        self.bytes(length as usize)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.short()?).map_err(|_| Malformed("a text is not UTF-8"))
    }

    /// A text of a type that checks it again.
    pub(crate) fn parse<T: std::str::FromStr>(&mut self) -> Result<T, Malformed> {
        self.text()?.parse().map_err(|_| Malformed("a text breaks the rule of its type"))
    }

    pub(crate) fn option<T>(
        &mut self,
        take: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        match self.u8()? {
            0 => Ok(None),
            1 => take(self).map(Some),
            _ => Err(Malformed("neither there nor not there")),
        }
    }

    pub(crate) fn bool(&mut self) -> Result<bool, Malformed> {
        self.option(|_| Ok(())).map(|there| there.is_some())
    }

    pub(crate) fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed("a record is longer than what it holds")) }
    }
}
