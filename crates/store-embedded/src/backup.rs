//! A hot backup: the segments as they are at one moment, copied while the store goes on.
//!
//! A frame that is written is never written again, so the moment is a length for each segment. What cleaning gives up
//! meanwhile is removed and not used again, so that an open file keeps what it had.

use std::sync::Arc;

use redrive_store::StoreError;

use crate::clock::MachineClock;
use crate::core::Core;
use crate::disk::{Disk, File};
use crate::engine::Later;
use crate::fault::unavailable;
use crate::format::segment;
use crate::journal::Journal;
use crate::store::EmbeddedStore;
use crate::verify::{VerifyReport, verify_with};
use crate::{LOGS, Options, SEGMENTS};

/// How much is copied at a time, in bytes.
const COPY_BYTES: usize = 1024 * 1024;

/// What was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupReport {
    /// How many files.
    pub files: u64,
    /// How many bytes of frames.
    pub bytes: u64,
    /// What is in the copy.
    pub verified: VerifyReport,
}

/// A segment at one moment.
struct Part {
    name: String,
    file: Arc<dyn File>,
    used: u64,
}

impl Core {
    fn begin_backup(&mut self) -> Vec<Part> {
        self.backups += 1;
        let part = |journal: &Journal| {
            let family = journal.family;
            let parts = journal.segments.iter().map(move |segment| Part {
                name: segment::name(segment.number, family),
                file: Arc::clone(&segment.file),
                used: u64::from(segment.used),
            });
            parts.collect::<Vec<Part>>()
        };
        let mut parts = part(&self.journal);
        parts.extend(part(&self.log_journal));
        parts
    }

    /// Answers how many are still under way.
    fn end_backup(&mut self) -> u32 {
        self.backups = self.backups.saturating_sub(1);
        self.backups
    }
}

impl EmbeddedStore {
    /// Copies everything that was answered before this call into an empty directory, while the store goes on, and reads
    /// the copy back. It blocks the thread it is polled on while it copies.
    pub async fn backup(&self, target: Arc<dyn Disk>) -> Result<BackupReport, StoreError> {
        let options = self.look(|core| Later::Now(core.options.clone())).await?;
        let parts = self.look(|core| Later::Now(core.begin_backup())).await?;
        let copied = copy(&parts, target.as_ref());
        self.look(|core| Later::Now(core.end_backup())).await?;
        let bytes = copied?;
        let verified = verify_with(&target, Arc::new(MachineClock), &options)?;
        Ok(BackupReport { files: parts.len() as u64, bytes, verified })
    }
}

fn copy(parts: &[Part], target: &dyn Disk) -> Result<u64, StoreError> {
    check_empty(target)?;
    let mut bytes = 0;
    for part in parts {
        let size = part.file.size().map_err(unavailable)?;
        let copy = target.create(&part.name, size).map_err(unavailable)?;
        let mut at = 0;
        let mut buffer = vec![0; COPY_BYTES];
        while at < part.used {
            let length = usize::try_from(part.used - at).unwrap_or(COPY_BYTES).min(COPY_BYTES);
            let piece = &mut buffer[..length];
            part.file.read_at(piece, at).map_err(unavailable)?;
            copy.write_at(piece, at).map_err(unavailable)?;
            at += length as u64;
        }
        copy.sync().map_err(unavailable)?;
        bytes += part.used;
    }
    target.sync_names().map_err(unavailable)?;
    Ok(bytes)
}

fn check_empty(target: &dyn Disk) -> Result<(), StoreError> {
    match target.list().map_err(unavailable)?.first() {
        None => Ok(()),
        Some(name) => {
            let problem = format!("the target must be empty, and has {}", target.place(name));
            Err(StoreError::Unavailable(problem.into()))
        }
    }
}

/// Copies a backup, which is checked first, into an empty directory that a store can be opened on.
pub fn restore(
    backup: &Arc<dyn Disk>,
    target: &dyn Disk,
    options: &Options,
) -> Result<VerifyReport, StoreError> {
    let verified = verify_with(backup, Arc::new(MachineClock), options)?;
    let mut parts = Vec::new();
    for name in backup.list().map_err(unavailable)? {
        let known = [SEGMENTS, LOGS].iter().any(|family| segment::number(&name, family).is_some());
        if known {
            let file = backup.open(&name).map_err(unavailable)?;
            let used = file.size().map_err(unavailable)?;
            parts.push(Part { name, file, used });
        }
    }
    copy(&parts, target)?;
    Ok(verified)
}
