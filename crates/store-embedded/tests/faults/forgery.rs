//! Sabotages that know the format: a disk that changes what a frame says, and makes its checksum right again, does
//! what an engine with a bug in it would do.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use redrive_store_embedded::disk::File;

use crate::sabotage::{HISTORIES_MAX, Sabotage, with};
use crate::{FLIPS, KILLS, POWER_CUTS};

const MAGIC: [u8; 4] = 0x3152_4452_u32.to_le_bytes();
const FRAME_HEADER: usize = 40;
const CHECKSUM_AT: usize = 8;
const SEGMENT_AT: usize = 12;
const RECORD_HEADER: usize = 5;

const MESSAGE: u8 = 5;
const GONE: u8 = 7;
const HOLD: u8 = 9;
const ENTRY: u8 = 10;

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn checksum(frame: &[u8]) -> u32 {
    let (before, rest) = frame.split_at(CHECKSUM_AT);
    crc32c::crc32c_append(crc32c::crc32c(before), &rest[4..])
}

/// Shows every frame at the front of some bytes, with where it begins; `false` ends it.
fn frames(bytes: &mut [u8], mut each: impl FnMut(usize, &mut [u8]) -> bool) {
    let mut at = 0;
    while let Some(rest) = bytes.get_mut(at..).filter(|rest| rest.starts_with(&MAGIC)) {
        let Some(whole) = number(rest, 4).map(|length| FRAME_HEADER + length as usize) else { break };
        let Some(frame) = rest.get_mut(..whole) else { break };
        if !each(at, frame) {
            break;
        }
        at += whole.next_multiple_of(8);
    }
}

/// Makes every checksum right that is not, as if nobody looked at it.
fn forge(bytes: &mut [u8]) {
    frames(bytes, |_, frame| {
        let sum = checksum(frame);
        frame[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&sum.to_le_bytes());
        true
    });
}

/// Shows every record of a frame: its tag, where it begins, and its body.
fn records(frame: &mut [u8], mut each: impl FnMut(u8, usize, &mut [u8])) {
    let mut at = FRAME_HEADER;
    while let (Some(tag), Some(length)) = (frame.get(at).copied(), number(frame, at + 1)) {
        let Some(body) = frame.get_mut(at + RECORD_HEADER..at + RECORD_HEADER + length as usize) else {
            break;
        };
        each(tag, at, body);
        at += RECORD_HEADER + length as usize;
    }
}

/// Changes records on their way to the disk.
fn write_changed(
    file: &Arc<dyn File>,
    bytes: &[u8],
    offset: u64,
    mut change: impl FnMut(u8, &mut [u8]),
) -> io::Result<()> {
    let mut bytes = bytes.to_vec();
    frames(&mut bytes, |_, frame| {
        records(frame, |tag, _, body| change(tag, body));
        true
    });
    forge(&mut bytes);
    file.write_at(&bytes, offset)
}

/// Reads frames with every checksum made right: a torn frame is as good as a whole one, and a flipped bit is what was
/// meant.
#[derive(Debug, Default)]
struct ChecksumIsNotLookedAt;

impl Sabotage for ChecksumIsNotLookedAt {
    fn read_at(&self, file: &Arc<dyn File>, into: &mut [u8], offset: u64) -> io::Result<()> {
        file.read_at(into, offset)?;
        forge(into);
        Ok(())
    }
}

#[test]
fn a_checksum_that_is_not_looked_at_is_found_by_flips() {
    FLIPS.finds_that(with::<ChecksumIsNotLookedAt>, HISTORIES_MAX, "and not seen");
}

#[test]
fn a_torn_frame_that_is_accepted_is_found_by_power_cuts() {
    POWER_CUTS.finds(with::<ChecksumIsNotLookedAt>, HISTORIES_MAX);
}

/// Shows nothing of a segment from its first bad frame on: the journal is cut there, whatever follows.
#[derive(Debug, Default)]
struct TailIsCutAtAnyBadFrame;

impl Sabotage for TailIsCutAtAnyBadFrame {
    fn read_at(&self, file: &Arc<dyn File>, into: &mut [u8], offset: u64) -> io::Result<()> {
        file.read_at(into, offset)?;
        let mut cut = None;
        frames(into, |at, frame| {
            let right = number(frame, CHECKSUM_AT) == Some(checksum(frame));
            cut = (!right).then_some(at);
            right
        });
        if let Some(cut) = cut {
            into[cut..].fill(0);
        }
        Ok(())
    }
}

#[test]
fn a_tail_that_is_cut_at_any_bad_frame_is_found_by_flips() {
    FLIPS.finds_that(with::<TailIsCutAtAnyBadFrame>, HISTORIES_MAX, "and not seen");
}

/// Writes dedup keys that outlive their message as other keys.
#[derive(Debug, Default)]
struct DedupKeyIsLostOnCleaning;

impl Sabotage for DedupKeyIsLostOnCleaning {
    fn write_at(&self, file: &Arc<dyn File>, bytes: &[u8], offset: u64) -> io::Result<()> {
        write_changed(file, bytes, offset, |tag, body| {
            if tag == HOLD {
                body[4..20].fill(0);
            }
        })
    }
}

#[test]
fn a_dedup_key_that_is_lost_on_cleaning_is_found_by_kills() {
    KILLS.finds(with::<DedupKeyIsLostOnCleaning>, HISTORIES_MAX);
}

/// Writes an entry of the registry again under another kind, so that it is lost.
#[derive(Debug, Default)]
struct CleanerForgetsEntries {
    written: Mutex<BTreeSet<Vec<u8>>>,
}

impl Sabotage for CleanerForgetsEntries {
    fn write_at(&self, file: &Arc<dyn File>, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        write_changed(file, bytes, offset, |tag, body| {
            // A version is never used twice, so the same body again is the cleaner's.
            if tag == ENTRY && !written.insert(body.to_vec()) {
                body[0] = (body[0] + 1) % 6;
            }
        })
    }
}

#[test]
fn a_cleaner_that_forgets_entries_is_found_by_kills() {
    KILLS.finds(with::<CleanerForgetsEntries>, HISTORIES_MAX);
}

/// Takes changes to a base that is not kept for changes to the last message that was read.
#[derive(Debug, Default)]
struct StaleChangeIsApplied {
    /// The first segment of this reading, the last one, and where the last message is.
    seen: Mutex<(u32, u32, Option<u64>)>,
}

impl Sabotage for StaleChangeIsApplied {
    fn read_at(&self, file: &Arc<dyn File>, into: &mut [u8], offset: u64) -> io::Result<()> {
        file.read_at(into, offset)?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if offset == 0 && into.starts_with(b"REDRIVE\n") {
            let segment = number(into, SEGMENT_AT).unwrap_or_default();
            *seen =
                if segment <= seen.1 { (segment, segment, None) } else { (seen.0.max(1), segment, seen.2) };
            return Ok(());
        }
        frames(into, |start, frame| {
            let segment = number(frame, SEGMENT_AT).unwrap_or_default();
            records(frame, |tag, at, body| {
                let place = u64::from(segment) << 32 | (offset + (start + at) as u64);
                match tag {
                    MESSAGE => seen.2 = Some(place),
                    GONE => body.chunks_exact_mut(8).for_each(|base| {
                        let named = number(base, 4).unwrap_or_default();
                        if let Some(last) = seen.2.filter(|_| named < seen.0) {
                            base.copy_from_slice(&last.to_le_bytes());
                        }
                    }),
                    _ => {}
                }
            });
            true
        });
        forge(into);
        Ok(())
    }
}

#[test]
fn a_stale_change_that_is_applied_is_found_by_kills() {
    KILLS.finds(with::<StaleChangeIsApplied>, HISTORIES_MAX);
}
