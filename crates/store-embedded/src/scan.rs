//! Reading a journal from its first frame to its last, and telling a torn tail from damage.
//!
//! Frames are checked on a thread of their own, a little ahead of whoever takes in what they hold.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
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
    /// Its end.
    End(u32),
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
#[derive(Clone)]
struct Candidate {
    number: u32,
    name: String,
    file: Arc<dyn File>,
    size: u32,
}

/// How much is read at a time, unless a frame is longer: little enough to stay in the cache until it is taken in.
const PIECE_BYTES: usize = 1024 * 1024;

/// What the thread that checks comes upon.
enum Checked {
    /// A segment, and the sequence of its first frame. The newest may never have been started; then it has none.
    Start(Candidate, Option<u64>),
    /// Frames, where they begin in the bytes, and where the bytes begin in the segment.
    Piece(Vec<(usize, frame::Header)>, Vec<u8>, usize),
    /// The segment ends here.
    End(End),
}

/// Where a segment ends.
struct End {
    /// Where the last frame ends.
    at: usize,
    /// Where the last frame but one begins.
    last_two: usize,
    /// Why nothing follows.
    stop: Malformed,
    /// Whether something follows, all the same.
    followed: bool,
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
        let (send, receive) = sync_channel(2);
        // Buffers go round: a fresh one costs as much as reading into it.
        let (give_back, returned) = sync_channel(4);
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut checker = Checker { disk: disk.as_ref(), send, returned };
                for found in found {
                    let newest = Some(found.number) == newest;
                    match checker.check(&found, newest) {
                        Ok(true) => {}
                        // The receiver is gone only where the scan has failed already.
                        Ok(false) => break,
                        Err(error) => return drop(checker.send.send(Err(error))),
                    }
                }
            });
            let mut segment = None;
            for checked in receive {
                match checked? {
                    Checked::Start(found, first) => {
                        segment = self.begin_segment(found, first)?;
                        if let Some(candidate) = &segment {
                            visit(Found::Segment(candidate.as_segment(0)))?;
                        }
                    }
                    Checked::Piece(frames, bytes, at) => {
                        let Some(candidate) = &segment else { continue };
                        self.check_sequence(candidate, &frames, at)?;
                        for (start, header) in &frames {
                            let body = *start + frame::HEADER_BYTES;
                            let records = bytes.get(body..body + header.length as usize).unwrap_or_default();
                            last_time = last_time.max(header.time);
                            let (number, time) = (header.segment, header.time);
                            visit(Found::Frame(Frame { segment: number, at: at + body, time, records }))?;
                        }
                        // Whoever checks may be done and gone.
                        drop(give_back.try_send(bytes));
                    }
                    Checked::End(end) => {
                        let Some(candidate) = segment.take() else { continue };
                        visit(Found::End(self.end_segment(&candidate, &end, newest)?))?;
                    }
                }
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

    /// Takes a segment over, if it follows the one before. One that was never started is a spare.
    fn begin_segment(
        &mut self,
        found: Candidate,
        first: Option<u64>,
    ) -> Result<Option<Candidate>, StoreError> {
        let Some(first) = first else {
            if !self.read_only {
                let spare = self.spare_name();
                self.disk.rename(&found.name, &spare).map_err(unavailable)?;
                self.take_spare(spare, found.file)?;
            }
            return Ok(None);
        };
        if !self.segments.is_empty() && first != self.sequence {
            let (name, offset) = self.last_end();
            let problem = format!("frames {} to {} are missing", self.sequence, first - 1);
            return Err(damaged(self.disk.as_ref(), &name, offset, problem));
        }
        self.sequence = first;
        Ok(Some(found))
    }

    fn check_sequence(
        &mut self,
        found: &Candidate,
        frames: &[(usize, frame::Header)],
        at: usize,
    ) -> Result<(), StoreError> {
        for (start, header) in frames {
            if header.sequence != self.sequence {
                let problem =
                    format!("frame {} stands where frame {} should", header.sequence, self.sequence);
                return Err(damaged(self.disk.as_ref(), &found.name, (at + start) as u64, problem));
            }
            self.sequence += 1;
        }
        Ok(())
    }

    /// Ends a segment. In the newest, what is not whole is a torn tail, unless something whole follows. Answers where it
    /// ends.
    fn end_segment(&mut self, found: &Candidate, end: &End, newest: Option<u32>) -> Result<u32, StoreError> {
        if end.followed {
            return Err(damaged(self.disk.as_ref(), &found.name, end.at as u64, end.stop));
        }
        if Some(found.number) == newest && !self.read_only {
            found.write_again(end).map_err(unavailable)?;
        }
        let used = u32::try_from(end.at).unwrap_or(u32::MAX);
        self.segments.push_back(found.as_segment(used));
        Ok(used)
    }

    fn last_end(&self) -> (String, u64) {
        let last = self.segments.back();
        let number = last.map_or(0, |last| last.number);
        (segment::name(number, self.family), last.map_or(0, |last| u64::from(last.used)))
    }
}

impl Candidate {
    fn read(&self, at: usize, length: usize, mut buffer: Vec<u8>) -> Result<Vec<u8>, StoreError> {
        buffer.resize(length, 0);
        self.file.read_at(&mut buffer, at as u64).map_err(unavailable)?;
        Ok(buffer)
    }

    fn as_segment(&self, used: u32) -> Segment {
        Segment {
            number: self.number,
            file: Arc::clone(&self.file),
            limit: limit_of(self.size),
            used,
            live: 0,
        }
    }

    /// Gets the last frames onto the disk, and the header. A process that was killed left them in the cache; where a
    /// sync had failed before, the cache has them and the disk never will, unless they are written once more.
    fn write_again(&self, end: &End) -> std::io::Result<()> {
        for (from, to) in [(0, HEADER_BYTES as usize), (end.last_two, end.at)] {
            let mut bytes = vec![0; to - from];
            self.file.read_at(&mut bytes, from as u64)?;
            self.file.write_at(&bytes, from as u64)?;
        }
        self.file.sync()
    }
}

/// The thread that checks frames.
struct Checker<'a> {
    disk: &'a dyn Disk,
    send: SyncSender<Result<Checked, StoreError>>,
    returned: Receiver<Vec<u8>>,
}

impl Checker<'_> {
    /// Reads a segment and checks its frames. Says whether anybody still listens.
    fn check(&mut self, found: &Candidate, newest: bool) -> Result<bool, StoreError> {
        let Some(header) = self.header(found, newest)? else {
            return Ok(self.tell(Checked::Start(found.clone(), None)));
        };
        if !self.tell(Checked::Start(found.clone(), Some(header.first_sequence))) {
            return Ok(false);
        }
        let mut at = HEADER_BYTES as usize;
        let mut last_two = (at, at);
        let stop = loop {
            let bytes = self.piece(found, at)?;
            let (frames, length, stop) = whole_frames(&bytes, found.number);
            for (start, _) in &frames {
                last_two = (last_two.1, at + start);
            }
            let (from, any) = (at, !frames.is_empty());
            at += length;
            if !self.tell(Checked::Piece(frames, bytes, from)) {
                return Ok(false);
            }
            if !any {
                break stop;
            }
        };
        let last_two = if at > HEADER_BYTES as usize { last_two.0 } else { at };
        let followed = newest && Self::is_followed(found, at)?;
        Ok(self.tell(Checked::End(End { at, last_two, stop, followed })))
    }

    fn tell(&self, checked: Checked) -> bool {
        self.send.send(Ok(checked)).is_ok()
    }

    /// The header of a segment; `None` where it is the newest and was never started.
    fn header(&self, found: &Candidate, newest: bool) -> Result<Option<segment::Header>, StoreError> {
        let length = found.size.min(HEADER_BYTES) as usize;
        let bytes = found.read(0, length, Vec::new())?;
        let header = segment::Header::decode(&bytes).and_then(|header| {
            let wrong = Malformed("the header belongs to another segment");
            if header.number == found.number { Ok(header) } else { Err(wrong) }
        });
        match header {
            Ok(header) if header.size > found.size => {
                let problem =
                    format!("the file is {} bytes long and was made with {}", found.size, header.size);
                Err(damaged(self.disk, &found.name, u64::from(found.size), problem))
            }
            Ok(header) => Ok(Some(header)),
            Err(_) if newest && found.size >= HEADER_BYTES && !Self::is_followed(found, 0)? => Ok(None),
            Err(problem) => Err(damaged(self.disk, &found.name, 0, problem)),
        }
    }

    /// Whether a whole frame of the segment follows anywhere.
    fn is_followed(found: &Candidate, at: usize) -> Result<bool, StoreError> {
        let bytes = found.read(at, (found.size as usize).saturating_sub(at), Vec::new())?;
        Ok(frame::find(&bytes, found.number).is_some())
    }

    /// The next piece of a segment, with one whole frame in it at least, if there is one.
    fn piece(&self, found: &Candidate, at: usize) -> Result<Vec<u8>, StoreError> {
        let left = (found.size as usize).saturating_sub(at);
        let buffer = self.returned.try_recv().unwrap_or_default();
        let bytes = found.read(at, left.min(PIECE_BYTES), buffer)?;
        match frame::Header::decode(&bytes, found.number) {
            Ok(header) if header.span() > bytes.len() => found.read(at, left.min(header.span()), bytes),
            _ => Ok(bytes),
        }
    }
}

/// The whole frames at the front of some bytes, how far they go, and why they end.
fn whole_frames(bytes: &[u8], segment: u32) -> (Vec<(usize, frame::Header)>, usize, Malformed) {
    let mut frames = Vec::new();
    let mut at = 0;
    loop {
        match frame::decode(bytes.get(at..).unwrap_or_default(), segment) {
            Ok((header, _)) => {
                frames.push((at, header));
                at += header.span();
            }
            Err(stop) => return (frames, at, stop),
        }
    }
}
