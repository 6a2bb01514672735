//! The layout of a segment, written down a second time: as far as finding frames needs it.

pub(crate) const SEGMENT_HEADER: usize = 64;
pub(crate) const FRAME_HEADER: usize = 40;
const MAGIC: [u8; 4] = 0x3152_4452_u32.to_le_bytes();
const LENGTH_AT: usize = 4;
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
