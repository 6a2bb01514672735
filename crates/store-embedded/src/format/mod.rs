//! The format of a directory, version 1. Everything that is on the disk is described here and nowhere else.
//!
//! A directory holds segments, `0000000001.segment` and on, and spare files, `segment-spare-1` and on, which hold
//! nothing. All
//! numbers are little-endian.
//!
//! **A segment** is a header of 64 bytes ([`segment`]) and frames, one after the other, each at a multiple of eight.
//! A segment that is used again gets a new number and keeps old frames behind its end; they carry the old number.
//!
//! **A frame** ([`frame`]) is one commit: a header with length, checksum, number of the segment, sequence, time, and
//! then records. Sequences have no gaps over the whole journal.
//!
//! **A record** ([`record`]) is a tag, a length, and a body. There are *bases*, each the whole state of one thing at
//! that moment, and *changes*, which name their base by its place ([`Place`]). A later base of the same thing replaces
//! an earlier one; that of a message names the one it replaces. A change whose base lies before the first segment that
//! is kept is stale: that thing has a newer base, or is gone. A change whose base should be there and is not, is damage.
//!
//! **The logs** that the layers above append to lie in segments of their own, `0000000001.log` and on, with the same
//! frames, whose records are log records only.

pub(crate) mod bytes;
pub(crate) mod config;
pub(crate) mod frame;
pub(crate) mod message;
pub(crate) mod record;
pub(crate) mod segment;

use std::fmt;

/// The version that this code writes, and the only one there is.
pub(crate) const VERSION: u32 = 1;

/// Where a record begins: a segment and an offset in it. Places grow as the journal does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Place(u64);

impl Place {
    pub(crate) const fn new(segment: u32, offset: u32) -> Self {
        Self((segment as u64) << 32 | offset as u64)
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    pub(crate) const fn segment(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[expect(clippy::cast_possible_truncation, reason = "the lower half is the offset")]
    pub(crate) const fn offset(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment {} offset {}", self.segment(), self.offset())
    }
}

/// Bytes that are not what this format writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub(crate) &'static str);
