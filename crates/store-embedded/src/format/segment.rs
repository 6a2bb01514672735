//! The header of a segment.

use super::bytes::{Put, Take};
use super::{Malformed, VERSION};

/// How long the header is. The first frame follows it.
pub(crate) const HEADER_BYTES: u32 = 64;

const MAGIC: &[u8; 8] = b"REDRIVE\n";

/// What a segment says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Its number.
    pub(crate) number: u32,
    /// The sequence of its first frame.
    pub(crate) first_sequence: u64,
    /// How long its file is, so that a file that was cut is not taken for one that ends early.
    pub(crate) size: u32,
}

impl Header {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES as usize);
        bytes.put(MAGIC);
        bytes.put_u32(VERSION);
        bytes.put_u32(self.number);
        bytes.put_u64(self.first_sequence);
        bytes.put_u32(self.size);
        bytes.resize(HEADER_BYTES as usize - 4, 0);
        bytes.put_u32(crc32c::crc32c(&bytes));
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut all = Take(bytes);
        let covered = all.bytes(HEADER_BYTES as usize - 4)?;
        if all.u32()? != crc32c::crc32c(covered) {
            return Err(Malformed("the header of the segment does not match its checksum"));
        }
        let mut fields = Take(covered);
        if fields.bytes(MAGIC.len())? != MAGIC {
            return Err(Malformed("this is not a segment"));
        }
        if fields.u32()? != VERSION {
            return Err(Malformed("the segment was written by another version, which this one cannot read"));
        }
        Ok(Self { number: fields.u32()?, first_sequence: fields.u64()?, size: fields.u32()? })
    }
}

/// The name of a segment's file.
pub(crate) fn name(number: u32, family: &str) -> String {
    format!("{number:010}.{family}")
}

/// The number of a segment from the name of its file.
pub(crate) fn number(name: &str, family: &str) -> Option<u32> {
    let digits = name.strip_suffix(family)?.strip_suffix('.')?;
    if digits.len() == 10 { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_of_a_header_is_seen() {
        let header = Header { number: 7, first_sequence: 99, size: 4_096 };
        let bytes = header.encode();
        assert_eq!(Header::decode(&bytes), Ok(header));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&flipped).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn names_and_numbers_belong_together() {
        assert_eq!(number(&name(12, "segment"), "segment"), Some(12));
        for other in ["12.segment", "spare-1", "0000000012.log", "00000000x2.segment"] {
            assert_eq!(number(other, "segment"), None, "{other}");
        }
    }
}
