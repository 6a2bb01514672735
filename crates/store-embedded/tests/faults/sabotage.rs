//! The histories can fail: each disk that does one thing wrong is found out by the kind that is there for it.
//!
//! Nothing in the product has a switch for these. A sabotage is a disk around the simulated one, or a lie that the
//! simulated one tells.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use redrive_store_embedded::disk::{Disk, File, Lies, SECTOR_BYTES, SimulatedDisk};

use crate::{BOTH, ERRORS, KILLS, POWER_CUTS};

/// Histories that are tried before a sabotage counts as not found.
pub(crate) const HISTORIES_MAX: u64 = 400;

/// What a sabotage does otherwise. A hook that is not written passes the call on.
pub(crate) trait Sabotage: std::fmt::Debug + Send + Sync {
    fn write_at(&self, file: &Arc<dyn File>, bytes: &[u8], offset: u64) -> io::Result<()> {
        file.write_at(bytes, offset)
    }

    fn read_at(&self, file: &Arc<dyn File>, into: &mut [u8], offset: u64) -> io::Result<()> {
        file.read_at(into, offset)
    }

    fn sync(&self, file: &Arc<dyn File>) -> io::Result<()> {
        file.sync()
    }

    fn rename(&self, disk: &SimulatedDisk, from: &str, to: &str) -> io::Result<()> {
        disk.rename(from, to)
    }
}

#[derive(Debug)]
struct SabotagedDisk {
    disk: SimulatedDisk,
    sabotage: Arc<dyn Sabotage>,
}

impl SabotagedDisk {
    fn file(&self, file: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(SabotagedFile { file, sabotage: Arc::clone(&self.sabotage) })
    }
}

impl Disk for SabotagedDisk {
    fn lock(&self) -> io::Result<bool> {
        self.disk.lock()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, name: &str, size: u64) -> io::Result<Arc<dyn File>> {
        self.disk.create(name, size).map(|file| self.file(file))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.disk.open(name).map(|file| self.file(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.sabotage.rename(&self.disk, from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.disk.sync_names()
    }

    fn place(&self, name: &str) -> String {
        self.disk.place(name)
    }
}

#[derive(Debug)]
struct SabotagedFile {
    file: Arc<dyn File>,
    sabotage: Arc<dyn Sabotage>,
}

impl File for SabotagedFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.sabotage.write_at(&self.file, bytes, offset)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        self.sabotage.read_at(&self.file, into, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sabotage.sync(&self.file)
    }
}

pub(crate) fn with<S: Sabotage + Default + 'static>(disk: SimulatedDisk) -> Arc<dyn Disk> {
    Arc::new(SabotagedDisk { disk, sabotage: Arc::new(S::default()) })
}

#[test]
fn a_disk_that_never_syncs_is_found_by_power_cuts_and_not_by_kills() {
    fn dress(disk: SimulatedDisk) -> Arc<dyn Disk> {
        disk.set_lies(Lies { ignore_sync: true, ..Lies::default() });
        Arc::new(disk)
    }
    POWER_CUTS.finds_that(dress, HISTORIES_MAX, "differs");
    BOTH.finds(dress, HISTORIES_MAX);
    KILLS.overlooks(dress, 50);
}

#[test]
fn a_disk_that_never_syncs_names_is_found_by_power_cuts() {
    POWER_CUTS.finds(
        |disk| {
            disk.set_lies(Lies { ignore_sync_names: true, ..Lies::default() });
            Arc::new(disk)
        },
        HISTORIES_MAX,
    );
}

/// Asks again when a sync fails, as if the second answer said anything about the first.
#[derive(Debug, Default)]
struct SyncIsRetried;

impl Sabotage for SyncIsRetried {
    fn sync(&self, file: &Arc<dyn File>) -> io::Result<()> {
        file.sync().or_else(|_| file.sync())
    }
}

#[test]
fn a_sync_that_is_retried_after_it_failed_is_found_by_errors() {
    ERRORS.finds(with::<SyncIsRetried>, HISTORIES_MAX);
}

/// Says that it cannot fail.
#[derive(Debug, Default)]
struct SyncNeverFails;

impl Sabotage for SyncNeverFails {
    fn sync(&self, file: &Arc<dyn File>) -> io::Result<()> {
        drop(file.sync());
        Ok(())
    }
}

#[test]
fn a_failed_sync_that_is_ignored_is_found_by_errors() {
    ERRORS.finds(with::<SyncNeverFails>, HISTORIES_MAX);
}

/// Answers a sync at once and does it when it is next asked for something.
#[derive(Debug, Default)]
struct ReplyBeforeSync {
    owed: Mutex<Option<Arc<dyn File>>>,
}

impl ReplyBeforeSync {
    fn pay(&self) -> io::Result<()> {
        let owed = self.owed.lock().unwrap_or_else(PoisonError::into_inner).take();
        owed.map_or(Ok(()), |file| file.sync())
    }
}

impl Sabotage for ReplyBeforeSync {
    fn write_at(&self, file: &Arc<dyn File>, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.pay()?;
        file.write_at(bytes, offset)
    }

    fn sync(&self, file: &Arc<dyn File>) -> io::Result<()> {
        self.pay()?;
        *self.owed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(file));
        Ok(())
    }
}

#[test]
fn a_reply_before_the_sync_is_found_by_power_cuts() {
    POWER_CUTS.finds(with::<ReplyBeforeSync>, HISTORIES_MAX);
}

/// Loses one write and says that it was written.
#[derive(Debug, Default)]
struct WriteIsLost(AtomicU64);

impl Sabotage for WriteIsLost {
    fn write_at(&self, file: &Arc<dyn File>, bytes: &[u8], offset: u64) -> io::Result<()> {
        if self.0.fetch_add(1, Ordering::SeqCst) == 20 {
            return Ok(());
        }
        file.write_at(bytes, offset)
    }
}

#[test]
fn a_write_that_is_lost_is_found_by_kills() {
    KILLS.finds(with::<WriteIsLost>, HISTORIES_MAX);
}

/// Puts one write into the wrong place.
#[derive(Debug, Default)]
struct WriteIsMisplaced(AtomicU64);

impl Sabotage for WriteIsMisplaced {
    fn write_at(&self, file: &Arc<dyn File>, bytes: &[u8], offset: u64) -> io::Result<()> {
        let misplaced = self.0.fetch_add(1, Ordering::SeqCst) == 20;
        file.write_at(bytes, if misplaced { offset.saturating_sub(512) } else { offset })
    }
}

#[test]
fn a_write_that_is_misplaced_is_found_by_kills() {
    KILLS.finds(with::<WriteIsMisplaced>, HISTORIES_MAX);
}

/// Reads one sector as zeros, once in a while.
#[derive(Debug, Default)]
struct SectorReadsAsZeros(AtomicU64);

impl Sabotage for SectorReadsAsZeros {
    fn read_at(&self, file: &Arc<dyn File>, into: &mut [u8], offset: u64) -> io::Result<()> {
        file.read_at(into, offset)?;
        if self.0.fetch_add(1, Ordering::SeqCst) % 8 == 7
            && let Some(sector) = into.chunks_mut(SECTOR_BYTES).last()
        {
            sector.fill(0);
        }
        Ok(())
    }
}

#[test]
fn a_sector_that_reads_as_zeros_is_found_by_kills() {
    KILLS.finds(with::<SectorReadsAsZeros>, HISTORIES_MAX);
}

/// Renames one file, and after that only says so.
#[derive(Debug, Default)]
struct RenameIsForgotten(AtomicBool);

impl Sabotage for RenameIsForgotten {
    fn rename(&self, disk: &SimulatedDisk, from: &str, to: &str) -> io::Result<()> {
        if self.0.swap(true, Ordering::SeqCst) { Ok(()) } else { disk.rename(from, to) }
    }
}

#[test]
fn a_rename_that_is_forgotten_is_found_by_kills() {
    KILLS.finds(with::<RenameIsForgotten>, HISTORIES_MAX);
}
