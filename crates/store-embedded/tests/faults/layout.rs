//! The layout of a segment, written down a second time: as far as forging and finding frames needs it.

pub(crate) const SEGMENT_HEADER: usize = 64;
pub(crate) const FRAME_HEADER: usize = 40;
const MAGIC: [u8; 4] = 0x3152_4452_u32.to_le_bytes();
const LENGTH_AT: usize = 4;
const CHECKSUM_AT: usize = 8;
const ALIGN: usize = 8;

/// Where frames begin and how long they are with their header, up to the first that is none. A mark counts as empty.
pub(crate) fn frames(segment: &[u8]) -> Vec<(usize, usize)> {
    let mut frames = Vec::new();
    let mut at = SEGMENT_HEADER;
    while let Some(frame) = segment.get(at..).filter(|frame| frame.starts_with(&MAGIC)) {
        let length = frame.get(LENGTH_AT..LENGTH_AT + 4).and_then(|bytes| bytes.try_into().ok());
        let Some(length) = length.map(u32::from_le_bytes) else { break };
        let whole = FRAME_HEADER + length as usize;
        if frame.len() < whole {
            break;
        }
        frames.push((at, if length == 0 { 0 } else { whole }));
        at += whole.next_multiple_of(ALIGN);
    }
    frames
}

/// Makes every checksum right that is not, as if nobody looked at it: a torn frame is as good as a whole one, and a
/// flipped bit is what was meant.
pub(crate) fn forge(segment: &mut [u8]) {
    for (at, length) in frames(segment) {
        let Some(frame) = segment.get_mut(at..at + length.max(FRAME_HEADER)) else { break };
        let (before, rest) = frame.split_at(CHECKSUM_AT);
        let sum = crc32c::crc32c_append(crc32c::crc32c(before), &rest[4..]);
        frame[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&sum.to_le_bytes());
    }
}
