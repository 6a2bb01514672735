//! The journal: segments that are written one after the other, and the frame that is being made.
//!
//! Places are given out while a frame is made, so a frame is made for one segment: [`Journal::admit`] is asked before a
//! command runs, and moves on to the next segment where the command would not fit. That is also where a full disk
//! shows: a segment is on the disk in full before anything is written to it. Two spare ones are kept in reserve, the
//! last for cleaning and the one before it for everything but growth, so that a full disk can be emptied.

use std::collections::VecDeque;
use std::sync::Arc;

use redrive_core::time::Timestamp;

use crate::disk::{Disk, File};
use crate::fault::{Fault, during, is_full};
use crate::format::bytes::size;
use crate::format::segment::{self, HEADER_BYTES};
use crate::format::{Malformed, Place, frame};

/// A frame that is longer is not added to: whoever waits for it has waited enough.
const FRAME_BYTES_FULL: usize = 4 * 1024 * 1024;
/// How many spare files are kept for the next segments; more are given back to the file system.
const SPARES_MAX: usize = 4;
/// A segment's file is longer than the segment by this share, for commands that write more than they said.
const SLACK_SHARE: u32 = 8;

/// What a command does to the space it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// It makes room for others.
    Clean,
    /// It changes what is there.
    Change,
    /// It brings something new.
    Grow,
}

impl Purpose {
    /// How many spare segments must be left for others.
    fn reserve(self) -> usize {
        self as usize
    }
}

/// Whether a command may run now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Yes.
    Now,
    /// After this frame.
    NextFrame,
    /// No: the disk is full.
    Full,
}

/// A segment that is kept.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    pub(crate) file: Arc<dyn File>,
    /// Where it is full.
    pub(crate) limit: u32,
    /// Where its last frame ends.
    pub(crate) used: u32,
    /// How many bases in it are still needed.
    pub(crate) live: u64,
}

/// A file that holds nothing and takes the next segment.
#[derive(Debug)]
pub(crate) struct Spare {
    pub(crate) name: String,
    pub(crate) file: Arc<dyn File>,
    pub(crate) size: u32,
}

/// What was written so far, since the store was opened.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Written {
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
}

/// Segments that are written one after the other.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) family: &'static str,
    pub(crate) segment_bytes: u32,
    /// The oldest first; the last is written to.
    pub(crate) segments: VecDeque<Segment>,
    pub(crate) spares: Vec<Spare>,
    pub(crate) next_spare: u32,
    /// The sequence of the next frame.
    pub(crate) sequence: u64,
    /// The frame that is being made.
    pub(crate) frame: Vec<u8>,
    /// Whether an empty frame lies where the next one will be written.
    marked: bool,
    /// Whether the directory must stay as it is.
    pub(crate) read_only: bool,
    pub(crate) written: Written,
    /// Bytes of bases, and of what belongs to them, that are still needed.
    pub(crate) live_bytes: u64,
    /// Whether the last command that brings something new was refused.
    refused: bool,
}

impl Journal {
    pub(crate) fn new(disk: Arc<dyn Disk>, family: &'static str, segment_bytes: u32) -> Self {
        let mut frame = Vec::new();
        frame::start(&mut frame);
        Self {
            disk,
            family,
            segment_bytes,
            segments: VecDeque::new(),
            spares: Vec::new(),
            next_spare: 0,
            sequence: 1,
            frame,
            marked: false,
            read_only: false,
            written: Written::default(),
            live_bytes: 0,
            refused: false,
        }
    }

    /// Whether anything is in the frame that is being made.
    pub(crate) fn has_records(&self) -> bool {
        self.frame.len() > frame::HEADER_BYTES
    }

    /// How many bytes all segments take.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| u64::from(segment.used)).sum::<u64>() + self.frame.len() as u64
    }

    /// Whether a command that writes about so many bytes may run now.
    pub(crate) fn admit(&mut self, bytes: usize, purpose: Purpose) -> Result<Admission, Fault> {
        let admission = self.judge(bytes, purpose)?;
        if purpose == Purpose::Grow {
            self.refused = admission == Admission::Full;
        }
        Ok(admission)
    }

    fn judge(&mut self, bytes: usize, purpose: Purpose) -> Result<Admission, Fault> {
        if purpose == Purpose::Grow
            && self.spares.len() < Purpose::Grow.reserve()
            && !self.has_spares(purpose.reserve())?
        {
            return Ok(Admission::Full);
        }
        let room = self.segments.back().map_or(0, |segment| segment.limit.saturating_sub(segment.used));
        let fits = self.frame.len() + bytes <= room as usize;
        if fits && self.frame.len() < FRAME_BYTES_FULL {
            return Ok(Admission::Now);
        }
        if self.has_records() {
            return Ok(Admission::NextFrame);
        }
        let need = size(self.frame.len() + bytes + HEADER_BYTES as usize);
        Ok(if self.roll(need, purpose)? { Admission::Now } else { Admission::Full })
    }

    /// Whether the disk has no room for another message: what is left is kept for changes and for cleaning.
    pub(crate) fn is_full(&self) -> bool {
        self.refused || self.spares.len() < Purpose::Grow.reserve()
    }

    /// Starts the next segment, unless that would take what is kept in reserve.
    fn roll(&mut self, need: u32, purpose: Purpose) -> Result<bool, Fault> {
        if !self.has_spares(purpose.reserve() + 1)? {
            return Ok(false);
        }
        let large = |spare: &Spare| limit_of(spare.size) >= need;
        let Some(at) = self.spares.iter().position(large) else {
            return self.roll_large(need, purpose);
        };
        let spare = self.spares.swap_remove(at);
        self.start(spare)?;
        // What was taken from the reserve is put back, as long as the disk has room.
        self.has_spares(Purpose::Grow.reserve())?;
        Ok(true)
    }

    /// The same for a frame that no spare is long enough for.
    fn roll_large(&mut self, need: u32, purpose: Purpose) -> Result<bool, Fault> {
        match self.make_spare(need)? {
            Some(spare) if self.spares.len() >= purpose.reserve() => {
                self.start(spare)?;
                Ok(true)
            }
            Some(spare) => {
                self.spares.push(spare);
                Ok(false)
            }
            None => Ok(false),
        }
    }

    /// Makes spare files until there are so many; says whether there are.
    pub(crate) fn has_spares(&mut self, wanted: usize) -> Result<bool, Fault> {
        while self.spares.len() < wanted {
            match self.make_spare(self.segment_bytes)? {
                Some(spare) => self.spares.push(spare),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// A name that no spare file has.
    pub(crate) fn spare_name(&mut self) -> String {
        self.next_spare += 1;
        format!("{}-spare-{}", self.family, self.next_spare)
    }

    fn make_spare(&mut self, limit: u32) -> Result<Option<Spare>, Fault> {
        let limit = limit.max(self.segment_bytes);
        let size = limit.saturating_add(limit / SLACK_SHARE).next_multiple_of(4_096);
        let name = self.spare_name();
        match self.disk.create(&name, u64::from(size)) {
            Ok(file) => Ok(Some(Spare { name, file, size })),
            Err(error) if is_full(&error) => Ok(None),
            Err(error) => Err(Fault::new("making a segment", error)),
        }
    }

    /// Makes a spare file the segment that is written to. Its new name is durable before its contents change, or a
    /// crash could leave a segment that is still needed with the contents of another.
    fn start(&mut self, spare: Spare) -> Result<(), Fault> {
        if self.marked {
            self.marked = false;
            self.sequence += 1;
            if let Some(last) = self.segments.back_mut() {
                last.used += size(frame::HEADER_BYTES);
            }
        }
        if let Some(last) = self.segments.back() {
            last.file.sync().map_err(during("closing a segment"))?;
        }
        let number = self.segments.back().map_or(1, |last| last.number + 1);
        let name = segment::name(number, self.family);
        self.disk.rename(&spare.name, &name).map_err(during("naming a segment"))?;
        self.disk.sync_names().map_err(during("naming a segment"))?;
        let header = segment::Header { number, first_sequence: self.sequence, size: spare.size };
        spare.file.write_at(&header.encode(), 0).map_err(during("starting a segment"))?;
        spare.file.sync().map_err(during("starting a segment"))?;
        self.written.bytes += u64::from(HEADER_BYTES);
        self.segments.push_back(Segment {
            number,
            file: spare.file,
            limit: limit_of(spare.size),
            used: HEADER_BYTES,
            live: 0,
        });
        Ok(())
    }

    /// Where a record that was just put into the frame will be.
    pub(crate) fn placed(&self, (at, length): (usize, u32)) -> (Place, u32) {
        let segment = self.segments.back().expect("a frame is made for a segment");
        (Place::new(segment.number, segment.used + size(at)), length)
    }

    /// A base is needed from now on.
    pub(crate) fn keep(&mut self, place: Place, length: u32) {
        self.live_bytes += u64::from(length);
        if let Some(segment) = self.segment_mut(place.segment()) {
            segment.live += 1;
        }
    }

    /// A base, and what belongs to it, is not needed any more.
    pub(crate) fn let_go(&mut self, place: Place, length: u32) {
        self.live_bytes = self.live_bytes.saturating_sub(u64::from(length));
        if let Some(segment) = self.segment_mut(place.segment()) {
            segment.live = segment.live.saturating_sub(1);
        }
    }

    fn segment_mut(&mut self, number: u32) -> Option<&mut Segment> {
        let first = self.segments.front()?.number;
        self.segments.get_mut(number.checked_sub(first)? as usize)
    }

    pub(crate) fn segment(&self, number: u32) -> Option<&Segment> {
        let first = self.segments.front()?.number;
        self.segments.get(number.checked_sub(first)? as usize)
    }

    /// Writes the frame, over the mark if there is one, and answers the file to sync.
    pub(crate) fn write(&mut self, time: Timestamp) -> Result<Arc<dyn File>, Fault> {
        let sequence = self.sequence;
        let segment = self.segments.back_mut().expect("a frame is made for a segment");
        frame::finish(&mut self.frame, segment.number, sequence, time);
        let written = segment.file.write_at(&self.frame, u64::from(segment.used));
        written.map_err(during("writing a frame"))?;
        segment.used += size(self.frame.len());
        self.sequence += 1;
        self.marked = false;
        self.written.frames += 1;
        self.written.bytes += self.frame.len() as u64;
        frame::start(&mut self.frame);
        Ok(Arc::clone(&segment.file))
    }

    /// Writes an empty frame behind the last one, where the next one will go. As long as it is there, damage to the last
    /// frame cannot be taken for a frame that was never finished.
    pub(crate) fn mark(&mut self, time: Timestamp) -> Result<(), Fault> {
        let Some(segment) = self.segments.back().filter(|_| !self.marked) else {
            return Ok(());
        };
        let mut mark = Vec::new();
        frame::start(&mut mark);
        frame::finish(&mut mark, segment.number, self.sequence, time);
        segment.file.write_at(&mark, u64::from(segment.used)).map_err(during("writing a mark"))?;
        self.marked = true;
        Ok(())
    }

    /// A record, from the disk or from the frame that is being made.
    pub(crate) fn read(&self, place: Place, length: u32) -> Result<Vec<u8>, Fault> {
        let mut bytes = vec![0; length as usize];
        self.read_into(&mut bytes, place)?;
        Ok(bytes)
    }

    pub(crate) fn read_into(&self, into: &mut [u8], place: Place) -> Result<(), Fault> {
        let gone = || Fault::new("reading a record", Malformed("its segment is not there"));
        let segment = self.segment(place.segment()).ok_or_else(gone)?;
        let made = place.offset().checked_sub(segment.used).map(|at| at as usize);
        match made {
            Some(at) => {
                let made = self.frame.get(at..at + into.len());
                into.copy_from_slice(made.ok_or_else(gone)?);
                Ok(())
            }
            None => segment.file.read_at(into, u64::from(place.offset())).map_err(during("reading a record")),
        }
    }

    /// Gives up the oldest segment: its file takes a later one, if it may be written over, or goes.
    pub(crate) fn drop_oldest(&mut self, reuse: bool) -> Result<(), Fault> {
        let Some(segment) = self.segments.pop_front() else {
            return Ok(());
        };
        let name = segment::name(segment.number, self.family);
        let size = segment.file.size().map_err(during("dropping a segment"))?;
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let ordinary = limit_of(size) < self.segment_bytes.saturating_mul(2);
        if reuse && self.spares.len() < SPARES_MAX && ordinary && limit_of(size) >= self.segment_bytes {
            let spare = Spare { name: self.spare_name(), file: segment.file, size };
            self.disk.rename(&name, &spare.name).map_err(during("dropping a segment"))?;
            self.spares.push(spare);
        } else {
            self.disk.remove(&name).map_err(during("dropping a segment"))?;
        }
        // Names need not become durable in order: without this, a crash could leave an old segment and take the next.
        self.disk.sync_names().map_err(during("dropping a segment"))
    }
}

/// Where a segment in a file of that size is full.
pub(crate) const fn limit_of(size: u32) -> u32 {
    size - size / (SLACK_SHARE + 1)
}
