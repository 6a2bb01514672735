//! The loop beside the engine: write, sync, next. No queue can be faster than this on the same disk.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use redrive_core::dice::Dice;
use rustix::fs::{FallocateFlags, fallocate, fdatasync};

use crate::measure::{Lap, Stopwatch};

/// What is written comes from a buffer of this size, as the bodies of the engine's messages do.
const SOURCE_BYTES: usize = 8 << 20;

/// Files that are written round and round.
#[derive(Debug)]
pub(crate) struct Bare {
    files: Vec<File>,
    file_bytes: u64,
    file: usize,
    offset: u64,
    source: Vec<u8>,
    from: usize,
}

/// What one verb of the engine wrote, in all its calls.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Written {
    /// How many bytes.
    pub(crate) bytes: u64,
    /// In how many syncs.
    pub(crate) syncs: u64,
}

impl Written {
    /// This and another.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, syncs: self.syncs + other.syncs }
    }
}

impl Bare {
    /// As many files as the engine has segments and spares, made as it makes them, and written once from end to end,
    /// as those are that it recycles: a block that was never written costs a sync more than one that was.
    pub(crate) fn prepare(dir: &Path, files: u64, file_bytes: u64) -> Self {
        fs::create_dir_all(dir).expect("a folder can be made");
        let source = random(SOURCE_BYTES);
        let files =
            (0..files).map(|n| prepared(&dir.join(format!("bare-{n}")), file_bytes, &source)).collect();
        Self { files, file_bytes, file: 0, offset: 0, source, from: 0 }
    }

    /// Writes so many bytes behind the last ones and waits until they are on the disk.
    pub(crate) fn commit(&mut self, bytes: usize) {
        let bytes = bytes.min(self.source.len());
        if self.offset + bytes as u64 > self.file_bytes {
            self.file = (self.file + 1) % self.files.len();
            self.offset = 0;
        }
        if self.from + bytes > self.source.len() {
            self.from = 0;
        }
        let file = &self.files[self.file];
        file.write_all_at(&self.source[self.from..self.from + bytes], self.offset).expect("a write succeeds");
        fdatasync(file).expect("a sync succeeds");
        self.offset += bytes as u64;
        self.from += bytes;
    }

    /// Writes `total` in `batches` batches, each shared out among the verbs of a life cycle as `shape` has it.
    pub(crate) fn replay(&mut self, shape: &[Written], total: Written, batches: u64) -> Lap {
        let mut frames = Frames::new(shape, total, batches);
        let watch = Stopwatch::start();
        for _ in 0..batches {
            for verb in 0..shape.len() {
                let (count, bytes) = frames.next(verb);
                for _ in 0..count {
                    self.commit(bytes);
                }
            }
        }
        watch.lap()
    }
}

/// Shares bytes and syncs out so that both come out even in the end, though neither divides by the batches.
struct Frames {
    verbs: Vec<Owed>,
}

#[derive(Clone, Copy)]
struct Owed {
    bytes_each: f64,
    syncs_each: f64,
    bytes: f64,
    syncs: f64,
}

impl Frames {
    fn new(shape: &[Written], total: Written, batches: u64) -> Self {
        let all = shape.iter().fold(Written::default(), |sum, verb| sum.plus(*verb));
        let portion = |part: u64, whole: u64, of: u64| {
            part as f64 / whole.max(1) as f64 * of as f64 / batches.max(1) as f64
        };
        let owed = |verb: &Written| Owed {
            bytes_each: portion(verb.bytes, all.bytes, total.bytes),
            syncs_each: portion(verb.syncs, all.syncs, total.syncs),
            bytes: 0.0,
            // Half of one ahead, so that a share of just under one a batch does not skip the first.
            syncs: 0.5,
        };
        Self { verbs: shape.iter().map(owed).collect() }
    }

    /// How many frames the verb writes in this batch, and how large each is.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "both are positive and small"
    )]
    fn next(&mut self, verb: usize) -> (u64, usize) {
        let owed = &mut self.verbs[verb];
        owed.bytes += owed.bytes_each;
        owed.syncs += owed.syncs_each;
        let count = owed.syncs.floor();
        if count < 1.0 {
            return (0, 0);
        }
        let bytes = (owed.bytes / count).floor();
        owed.syncs -= count;
        owed.bytes -= bytes * count;
        (count as u64, bytes as usize)
    }
}

/// A file with its space, every block of it written and on the disk.
fn prepared(path: &Path, bytes: u64, source: &[u8]) -> File {
    let file = OpenOptions::new().create_new(true).write(true).open(path).expect("a file can be made");
    fallocate(&file, FallocateFlags::empty(), 0, bytes).expect("there is space");
    file.sync_all().expect("a sync succeeds");
    let mut at = 0;
    while at < bytes {
        let part = source.len().min(usize::try_from(bytes - at).unwrap_or(usize::MAX));
        file.write_all_at(&source[..part], at).expect("a write succeeds");
        at += part as u64;
    }
    file.sync_all().expect("a sync succeeds");
    file
}

/// Bytes that no disk can shorten.
pub(crate) fn random(bytes: usize) -> Vec<u8> {
    let mut dice = Dice::seeded(0x00BA_5E11);
    let mut source = Vec::with_capacity(bytes + 8);
    while source.len() < bytes {
        source.extend_from_slice(&dice.roll().to_le_bytes());
    }
    source.truncate(bytes);
    source
}
