//! Reading a journal from its first frame to its last, and telling a torn tail from damage.
//!
//! Frames are checked on a thread of their own, one segment ahead of whoever takes in what they hold.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use redrive_core::time::Timestamp;
use redrive_store::StoreError;

use crate::disk::{Disk, File};
use crate::fault::{damaged, unavailable};
use crate::format::segment::{self, HEADER_BYTES};
use crate::format::{Malformed, frame};
use crate::journal::{Journal, Segment, Spare, limit_of};

/// What a scan comes upon, in order.
pub(crate) enum Found<'a> {
    /// A segment; its frames follow.
    Segment(Segment),
    /// A frame of it.
    Frame(Frame<'a>),
}

/// One frame, its checksum found right.
pub(crate) struct Frame<'a> {
    pub(crate) segment: u32,
    /// Where its records begin in the segment.
    pub(crate) at: usize,
    pub(crate) time: Timestamp,
    pub(crate) records: &'a [u8],
}

/// A segment as it was found.
struct Candidate {
    number: u32,
    name: String,
    file: Arc<dyn File>,
    size: u32,
}

/// A segment that was read: its bytes, and where its frames are.
struct Checked {
    found: Candidate,
    bytes: Vec<u8>,
    first_sequence: u64,
    frames: Vec<(usize, frame::Header)>,
    /// Where the last frame ends.
    end: usize,
    /// Why nothing follows.
    stop: Malformed,
}

impl Journal {
    /// Reads the journal of a directory: `visit` is shown every frame in order. Afterwards the journal is ready to be
    /// written to. Answers the time of the last frame.
    pub(crate) fn scan(
        &mut self,
        mut visit: impl FnMut(Found<'_>) -> Result<(), StoreError>,
    ) -> Result<Timestamp, StoreError> {
        let found = self.find_files()?;
        let disk = Arc::clone(&self.disk);
        let mut last_time = Timestamp::EPOCH;
        let newest = found.last().map(|found| found.number);
        let (send, receive) = sync_channel(1);
        // Buffers go round: a fresh one of this size costs as much as reading into it.
        let (give_back, returned) = sync_channel(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                let (send, returned) = (send, returned);
                for found in found {
                    let newest = Some(found.number) == newest;
                    let buffer = returned.try_recv().unwrap_or_default();
                    // The receiver is gone only where the scan has failed already.
                    if send.send(check(disk.as_ref(), found, newest, buffer)).is_err() {
                        break;
                    }
                }
            });
            for checked in receive {
                let Some((checked, segment)) = self.accept(checked?, newest)? else { continue };
                visit(Found::Segment(segment))?;
                for (at, header) in &checked.frames {
                    let body = *at + frame::HEADER_BYTES;
                    let records = checked.bytes.get(body..body + header.length as usize).unwrap_or_default();
                    last_time = last_time.max(header.time);
                    visit(Found::Frame(Frame {
                        segment: header.segment,
                        at: body,
                        time: header.time,
                        records,
                    }))?;
                }
                // Whoever checks may be done and gone.
                drop(give_back.try_send(checked.bytes));
            }
            Ok(last_time)
        })
    }

    /// Sorts the files of the directory into segments and spares.
    fn find_files(&mut self) -> Result<Vec<Candidate>, StoreError> {
        let mut segments = BTreeMap::new();
        for name in self.disk.list().map_err(unavailable)? {
            if let Some(number) = segment::number(&name, self.family) {
                segments.insert(number, name);
            } else if let Some(number) = self.spare_number(&name) {
                self.next_spare = self.next_spare.max(number);
                let file = self.disk.open(&name).map_err(unavailable)?;
                self.take_spare(name, file)?;
            }
        }
        let mut found: Vec<Candidate> = Vec::new();
        for (number, name) in segments {
            if let Some(last) = found.last().filter(|last| last.number + 1 != number) {
                let problem = format!("segment {} is missing", last.number + 1);
                return Err(damaged(self.disk.as_ref(), &name, 0, problem));
            }
            let file = self.disk.open(&name).map_err(unavailable)?;
            let size = u32::try_from(file.size().map_err(unavailable)?).unwrap_or(u32::MAX);
            found.push(Candidate { number, name, file, size });
        }
        Ok(found)
    }

    fn spare_number(&self, name: &str) -> Option<u32> {
        name.strip_prefix(self.family)?.strip_prefix("-spare-")?.parse().ok()
    }

    /// Keeps a file that holds nothing, if it has the size that is wanted now.
    fn take_spare(&mut self, name: String, file: Arc<dyn File>) -> Result<(), StoreError> {
        if self.read_only {
            return Ok(());
        }
        let size = u32::try_from(file.size().map_err(unavailable)?).unwrap_or(u32::MAX);
        if limit_of(size) >= self.segment_bytes && self.spares.len() < 2 {
            self.spares.push(Spare { name, file, size });
            Ok(())
        } else {
            self.disk.remove(&name).map_err(unavailable)
        }
    }

    /// Takes a segment over, if it follows the one before. The newest may never have been started: then it is a spare.
    fn accept(
        &mut self,
        checked: Checked,
        newest: Option<u32>,
    ) -> Result<Option<(Checked, Segment)>, StoreError> {
        let disk = self.disk.as_ref();
        let number = checked.found.number;
        if checked.first_sequence == 0 {
            if !self.read_only {
                let spare = self.spare_name();
                self.disk.rename(&checked.found.name, &spare).map_err(unavailable)?;
                self.take_spare(spare, checked.found.file)?;
            }
            return Ok(None);
        }
        if !self.segments.is_empty() && checked.first_sequence != self.sequence {
            let (name, offset) = self.last_end();
            let problem = format!("frames {} to {} are missing", self.sequence, checked.first_sequence - 1);
            return Err(damaged(disk, &name, offset, problem));
        }
        self.sequence = checked.first_sequence;
        for (at, header) in &checked.frames {
            if header.sequence != self.sequence {
                let problem =
                    format!("frame {} stands where frame {} should", header.sequence, self.sequence);
                return Err(damaged(disk, &checked.found.name, *at as u64, problem));
            }
            self.sequence += 1;
        }
        if Some(number) == newest
            && let Some(behind) = checked.bytes.get(checked.end..)
            && frame::find(behind, number).is_some()
        {
            return Err(damaged(disk, &checked.found.name, checked.end as u64, checked.stop));
        }
        if Some(number) == newest && !self.read_only {
            checked.write_again().map_err(unavailable)?;
        }
        let segment = || Segment {
            number,
            file: Arc::clone(&checked.found.file),
            limit: limit_of(checked.found.size),
            used: u32::try_from(checked.end).unwrap_or(u32::MAX),
            live: 0,
        };
        self.segments.push_back(segment());
        let segment = segment();
        Ok(Some((checked, segment)))
    }

    fn last_end(&self) -> (String, u64) {
        let last = self.segments.back();
        let number = last.map_or(0, |last| last.number);
        (segment::name(number, self.family), last.map_or(0, |last| u64::from(last.used)))
    }
}

impl Checked {
    /// Gets the last frames onto the disk, and the header. A process that was killed left them in the cache; where a
    /// sync had failed before, the cache has them and the disk never will, unless they are written once more.
    fn write_again(&self) -> std::io::Result<()> {
        let header = HEADER_BYTES as usize;
        let from = self.frames.iter().rev().nth(1).map_or(header, |(at, _)| *at);
        for (from, to) in [(0, header), (from, self.end)] {
            self.found.file.write_at(self.bytes.get(from..to).unwrap_or_default(), from as u64)?;
        }
        self.found.file.sync()
    }
}

/// Reads a segment and finds its frames.
fn check(disk: &dyn Disk, found: Candidate, newest: bool, mut bytes: Vec<u8>) -> Result<Checked, StoreError> {
    bytes.resize(found.size as usize, 0);
    found.file.read_at(&mut bytes, 0).map_err(unavailable)?;
    let header = segment::Header::decode(&bytes).and_then(|header| {
        let wrong = Malformed("the header belongs to another segment");
        if header.number == found.number { Ok(header) } else { Err(wrong) }
    });
    let header = match header {
        Ok(header) => header,
        Err(_) if newest && found.size >= HEADER_BYTES && frame::find(&bytes, found.number).is_none() => {
            let stop = Malformed("the segment was not started");
            return Ok(Checked { found, bytes, first_sequence: 0, frames: Vec::new(), end: 0, stop });
        }
        Err(problem) => return Err(damaged(disk, &found.name, 0, problem)),
    };
    if header.size > found.size {
        let problem = format!("the file is {} bytes long and was made with {}", found.size, header.size);
        return Err(damaged(disk, &found.name, u64::from(found.size), problem));
    }
    let mut frames = Vec::new();
    let mut end = HEADER_BYTES as usize;
    let stop = loop {
        match frame::decode(bytes.get(end..).unwrap_or_default(), found.number) {
            Ok((header, _)) => {
                frames.push((end, header));
                end += header.span();
            }
            Err(stop) => break stop,
        }
    };
    Ok(Checked { found, bytes, first_sequence: header.first_sequence, frames, end, stop })
}
