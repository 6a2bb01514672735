//! A frame: one commit.

use redrive_core::time::Timestamp;

use super::Malformed;
use super::bytes::{Put, Take, size};

/// How long the header of a frame is.
pub(crate) const HEADER_BYTES: usize = 40;
/// Frames begin at multiples of this.
pub(crate) const ALIGN: usize = 8;

const MAGIC: u32 = 0x3152_4452;
/// The checksum covers everything but itself.
const CHECKSUM_AT: usize = 8;

/// What a frame says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// How many bytes of records follow.
    pub(crate) length: u32,
    checksum: u32,
    /// The number of the segment it was written to; older ones are what a segment held before it was used again.
    pub(crate) segment: u32,
    /// Its place in the order of all frames.
    pub(crate) sequence: u64,
    /// The store's time when it was written.
    pub(crate) time: Timestamp,
}

/// Where the next frame begins.
pub(crate) const fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGN)
}

/// Starts a frame in an empty buffer: records follow, and [`finish`] ends it.
pub(crate) fn start(frame: &mut Vec<u8>) {
    frame.clear();
    frame.resize(HEADER_BYTES, 0);
}

/// Fills in the header, and pads.
pub(crate) fn finish(frame: &mut Vec<u8>, segment: u32, sequence: u64, time: Timestamp) {
    let length = size(frame.len() - HEADER_BYTES);
    let mut header = Vec::with_capacity(HEADER_BYTES);
    header.put_u32(MAGIC);
    header.put_u32(length);
    header.put_u32(0);
    header.put_u32(segment);
    header.put_u64(sequence);
    header.put_time(time);
    header.put_u64(0);
    frame[..HEADER_BYTES].copy_from_slice(&header);
    let sum = checksum(frame);
    frame[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&sum.to_le_bytes());
    frame.resize(aligned(frame.len()), 0);
}

fn checksum(frame: &[u8]) -> u32 {
    let (before, rest) = frame.split_at(CHECKSUM_AT);
    crc32c::crc32c_append(crc32c::crc32c(before), &rest[4..])
}

impl Header {
    /// The header of a frame of that segment, if these bytes begin with one.
    pub(crate) fn decode(bytes: &[u8], segment: u32) -> Result<Self, Malformed> {
        let mut fields = Take(bytes);
        if fields.u32()? != MAGIC {
            return Err(Malformed("no frame begins here"));
        }
        let (length, checksum) = (fields.u32()?, fields.u32()?);
        let header =
            Self { length, checksum, segment: fields.u32()?, sequence: fields.u64()?, time: fields.time()? };
        if header.segment == segment {
            Ok(header)
        } else {
            Err(Malformed("the frame belongs to another segment"))
        }
    }

    /// How far it is to the next frame.
    pub(crate) const fn span(&self) -> usize {
        aligned(HEADER_BYTES + self.length as usize)
    }
}

/// The frame at the front of `bytes`, its checksum found right, and its records.
pub(crate) fn decode(bytes: &[u8], segment: u32) -> Result<(Header, &[u8]), Malformed> {
    let header = Header::decode(bytes, segment)?;
    let whole = Take(bytes).bytes(HEADER_BYTES + header.length as usize)?;
    if checksum(whole) != header.checksum {
        return Err(Malformed("the frame does not match its checksum"));
    }
    Ok((header, whole.split_at(HEADER_BYTES).1))
}

/// Whether a whole and right frame of that segment begins anywhere in `bytes`, which begin where a frame may.
pub(crate) fn find(bytes: &[u8], segment: u32) -> Option<usize> {
    let magic = MAGIC.to_le_bytes();
    let starts = (0..bytes.len()).step_by(ALIGN);
    starts.into_iter().find(|at| {
        let here = bytes.split_at(*at).1;
        here.starts_with(&magic) && decode(here, segment).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Vec<u8> {
        let mut frame = Vec::new();
        start(&mut frame);
        frame.put(b"some records");
        finish(&mut frame, 3, 17, Timestamp::from_millis(1_000));
        frame
    }

    #[test]
    fn a_frame_says_what_it_holds() {
        let frame = frame();
        let (header, records) = decode(&frame, 3).unwrap();
        assert_eq!(
            (header.sequence, header.time, records),
            (17, Timestamp::from_millis(1_000), &b"some records"[..])
        );
        assert_eq!(header.span(), frame.len());
        assert!(decode(&frame, 4).is_err(), "a frame of the segment's last life");
    }

    #[test]
    fn every_flipped_bit_is_seen_and_every_cut() {
        let frame = frame();
        let covered = HEADER_BYTES + b"some records".len();
        for bit in 0..covered * 8 {
            let mut flipped = frame.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&flipped, 3).is_err(), "bit {bit}");
        }
        assert!((0..covered).all(|cut| decode(&frame[..cut], 3).is_err()));
    }

    #[test]
    fn a_frame_is_found_behind_damage() {
        let mut bytes = vec![0xAA; 64];
        bytes.extend(frame());
        assert_eq!(find(&bytes, 3), Some(64));
        assert_eq!(find(&bytes, 4), None);
    }
}
