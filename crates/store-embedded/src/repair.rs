//! Cutting a damaged journal off where the damage begins, after saying what that loses.
//!
//! What stands before the damage is a state the store once had. What stands behind it cannot be trusted to follow from
//! anything, so all of it goes: it is renamed, not removed, and `lost-` files can be looked at and deleted by a person.

use std::sync::Arc;

use redrive_store::StoreError;

use crate::clock::MachineClock;
use crate::core::Core;
use crate::disk::Disk;
use crate::fault::unavailable;
use crate::format::segment::{self, HEADER_BYTES};
use crate::format::{frame, segment as segments};
use crate::{LOGS, Options, SEGMENTS};

/// What a repair would lose, or has lost.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepairReport {
    /// Where the journal is cut, and why; `None` where it is whole.
    pub cut: Option<(String, String)>,
    /// Whole frames behind the cut, which are lost with it. The damaged one is not among them.
    pub frames_lost: u64,
    /// Files that are put aside in whole.
    pub files_lost: Vec<String>,
    /// Whether it was done, or only looked at.
    pub done: bool,
}

/// Where a directory is damaged: the family and number of the segment, and the offset.
struct Cut {
    family: &'static str,
    number: u32,
    offset: u64,
}

/// Says what would be lost by cutting the journal where it is damaged, and does it unless it is a dry run. The directory
/// must not be open.
pub fn repair(disk: &Arc<dyn Disk>, options: &Options, dry_run: bool) -> Result<RepairReport, StoreError> {
    if !disk.lock().map_err(unavailable)? {
        return Err(StoreError::Unavailable("another process has the directory".into()));
    }
    let mut report = RepairReport::default();
    // Each cut may bring to light that something else leads nowhere; every cut makes the journal shorter.
    loop {
        let Err(error) = Core::read(disk, Arc::new(MachineClock), options.clone(), true) else {
            report.done = !dry_run && report.cut.is_some();
            return Ok(report);
        };
        let StoreError::Damaged { location, problem } = &error else { return Err(error) };
        let Some(cut) = find(disk.as_ref(), location)? else { return Err(error) };
        report.cut = Some((location.clone(), problem.clone()));
        let later = later_files(disk.as_ref(), &cut)?;
        report.frames_lost += frames_behind(disk.as_ref(), &cut, &later)?;
        report.files_lost.extend(later.iter().cloned());
        if dry_run {
            return Ok(report);
        }
        carry_out(disk.as_ref(), &cut, &later)?;
    }
}

/// The segment that a location names.
fn find(disk: &dyn Disk, location: &str) -> Result<Option<Cut>, StoreError> {
    for name in disk.list().map_err(unavailable)? {
        for family in [SEGMENTS, LOGS] {
            let Some(number) = segments::number(&name, family) else { continue };
            let offset =
                location.strip_prefix(&disk.place(&name)).and_then(|rest| rest.strip_prefix(" at offset "));
            if let Some(offset) = offset.and_then(|offset| offset.parse().ok()) {
                return Ok(Some(Cut { family, number, offset }));
            }
        }
    }
    Ok(None)
}

/// The files that go in whole: those behind the damaged one, and that one itself where its header is damaged.
fn later_files(disk: &dyn Disk, cut: &Cut) -> Result<Vec<String>, StoreError> {
    let first = if cut.offset < u64::from(HEADER_BYTES) { cut.number } else { cut.number + 1 };
    let mut later = disk.list().map_err(unavailable)?;
    later.retain(|name| segments::number(name, cut.family).is_some_and(|number| number >= first));
    later.sort_unstable();
    Ok(later)
}

fn frames_behind(disk: &dyn Disk, cut: &Cut, later: &[String]) -> Result<u64, StoreError> {
    let mut frames = frames_in(disk, &segment::name(cut.number, cut.family), cut.number, cut.offset)?;
    for name in later.iter().filter(|name| **name != segment::name(cut.number, cut.family)) {
        let number = segments::number(name, cut.family).unwrap_or_default();
        frames += frames_in(disk, name, number, u64::from(HEADER_BYTES))?;
    }
    Ok(frames)
}

fn frames_in(disk: &dyn Disk, name: &str, number: u32, from: u64) -> Result<u64, StoreError> {
    let file = disk.open(name).map_err(unavailable)?;
    let size = file.size().map_err(unavailable)?;
    let mut bytes = vec![0; usize::try_from(size.saturating_sub(from)).unwrap_or_default()];
    file.read_at(&mut bytes, from).map_err(unavailable)?;
    let (mut frames, mut at) = (0, 0);
    while let Some(next) = bytes.get(at..).and_then(|rest| frame::find(rest, number)) {
        let span = frame::Header::decode(bytes.get(at + next..).unwrap_or_default(), number)
            .map(|header| header.span());
        at += next + span.unwrap_or(frame::ALIGN);
        frames += 1;
    }
    Ok(frames)
}

/// Puts the later files aside and wipes the damaged one from the cut on.
fn carry_out(disk: &dyn Disk, cut: &Cut, later: &[String]) -> Result<(), StoreError> {
    for name in later {
        disk.rename(name, &format!("lost-{name}")).map_err(unavailable)?;
    }
    let name = segment::name(cut.number, cut.family);
    if !later.contains(&name) {
        let file = disk.open(&name).map_err(unavailable)?;
        let size = file.size().map_err(unavailable)?;
        let zeros = vec![0; usize::try_from(size.saturating_sub(cut.offset)).unwrap_or_default()];
        file.write_at(&zeros, cut.offset).map_err(unavailable)?;
        file.sync().map_err(unavailable)?;
    }
    disk.sync_names().map_err(unavailable)
}
