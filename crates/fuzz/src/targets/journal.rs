//! The journal of the embedded store: what the disk gives back may be anything.

use std::sync::Arc;

use redrive_core::time::{Millis, Timestamp};
use redrive_store_embedded::disk::{Disk, SimulatedDisk};
use redrive_store_embedded::{Clock, EmbeddedStore, Options, fuzzing, verify};

use crate::trial::note;

const SEGMENTS: &str = "segment";
const LOGS: &str = "log";
/// The number of the segment that the corpus was cut from: changes name their base by it.
const NUMBER: u32 = 16;

fn told(answer: Result<(), String>) {
    match answer {
        Ok(()) => note("right"),
        Err(problem) => note(problem),
    }
}

/// A frame of any segment; the first four bytes say of which.
pub fn frame(input: &[u8]) {
    if let Some((segment, bytes)) = input.split_first_chunk() {
        told(fuzzing::frame(bytes, u32::from_le_bytes(*segment)));
    }
}

/// The header of a segment.
pub fn segment_header(input: &[u8]) {
    told(fuzzing::segment_header(input));
}

/// The records of a frame.
pub fn record(input: &[u8]) {
    told(fuzzing::records(input));
}

/// A whole directory with one segment, as it is.
pub fn segment(input: &[u8]) {
    open(input, named(input), SEGMENTS);
}

/// The same with a segment of the logs.
pub fn log_segment(input: &[u8]) {
    open(input, named(input), LOGS);
}

/// A whole directory with one segment that was written as the engine writes it, whatever is in its frames.
pub fn journal(input: &[u8]) {
    open(&fuzzing::journal(input, NUMBER), NUMBER, SEGMENTS);
}

/// The number that a segment says it has; another one would only be refused.
fn named(segment: &[u8]) -> u32 {
    segment.get(12..16).and_then(|number| number.try_into().ok()).map_or(1, u32::from_le_bytes)
}

/// A clock that stands still.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000)
    }

    fn uptime(&self) -> Millis {
        Millis::ZERO
    }
}

/// A store refuses to open, or it opens and will do so again.
fn open(segment: &[u8], number: u32, family: &str) {
    let disk = SimulatedDisk::new(1);
    let name = format!("{number:010}.{family}");
    let file = disk.create(&name, segment.len() as u64).expect("the disk is empty and in order");
    file.write_at(segment, 0).expect("the disk is in order");
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let options = Options { segment_bytes: 16 * 1024, ..Options::default() };
    let opened = EmbeddedStore::stepped(Arc::clone(&disk), Arc::new(Still), options.clone());
    match opened {
        Err(refused) => note(refused),
        Ok((store, _)) => {
            store.close().expect("a store that opened closes");
            // Bodies are read when somebody wants them, and by `verify`: what opened may still be found damaged.
            match verify(&disk, &options) {
                Ok(report) => note(format_args!("whole {} {}", report.queues > 0, report.messages > 0)),
                Err(damaged) => note(damaged),
            }
            let again = EmbeddedStore::stepped(Arc::clone(&disk), Arc::new(Still), options);
            assert!(again.is_ok(), "what opened opens again: {again:?}");
        }
    }
}
