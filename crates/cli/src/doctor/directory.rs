//! The directory of the embedded store: whether it can be written, what it stands on, and how long a sync takes.

use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;
use redrive_store_embedded::Options;
use redrive_store_embedded::disk::{Disk as _, RealDisk};
use rustix::fs::{StatFs, fdatasync, statfs};
use tokio::time::Instant;

use super::finding::Finding;

/// How often something is written and synced.
const SYNCS: u64 = 64;
/// What is written each time, in bytes.
const WRITE_BYTES: usize = 4_096;
/// A sync that takes longer is felt, in microseconds.
const SLOW_US: u64 = 50_000;

/// What is longer than a minute is told as that.
const SYNC_US_MAX: u64 = 60_000_000;

/// File systems by their number in the kernel.
const KINDS: [(u64, &str); 10] = [
    (0xEF53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683E, "btrfs"),
    (0x2FC1_2FC1, "zfs"),
    (0xF2F5_2010, "f2fs"),
    (0x794C_7630, "overlayfs"),
    (0x0102_1994, "tmpfs"),
    (0x6969, "nfs"),
    (0xFF53_4D42, "cifs"),
    (0x6573_5546, "fuse"),
];
/// Those that lose everything, or that decide by themselves when something is on a disk.
const DOUBTFUL: [&str; 4] = ["tmpfs", "nfs", "cifs", "fuse"];

pub(super) fn check(dir: &Path) -> Vec<Finding> {
    let place = standing(dir);
    let mut findings = vec![found(dir)];
    findings.push(match statfs(&place) {
        Ok(stats) => space(&stats),
        Err(error) => Finding::fail("disk", format!("{}: {error}", place.display())),
    });
    findings.push(match syncs(&place) {
        Ok(times) => latency(&times),
        Err(error) => {
            Finding::fail("fsync", format!("nothing can be written in {}: {error}", place.display()))
        }
    });
    findings
}

/// The directory, or the nearest one above it that is there.
fn standing(dir: &Path) -> PathBuf {
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    dir.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

/// Whether there is a store, and whether somebody has it.
fn found(dir: &Path) -> Finding {
    const NAME: &str = "data";
    let shown = dir.display();
    if !dir.exists() {
        return Finding::ok(NAME, format!("{shown} is not there yet; the server makes it"));
    }
    if !dir.is_dir() {
        return Finding::fail(NAME, format!("{shown} is no directory"));
    }
    let is_lock_there = dir.join("lock").exists();
    match is_lock_there.then(|| RealDisk::new(dir).and_then(|disk| disk.lock())) {
        None => Finding::ok(NAME, format!("{shown} has no store yet")),
        Some(Ok(true)) => Finding::ok(NAME, format!("{shown} has a store that no server has open")),
        Some(Ok(false)) => Finding::ok(NAME, format!("{shown} has a store that a running server has open")),
        Some(Err(error)) => Finding::fail(NAME, format!("{shown}: {error}")),
    }
}

fn space(stats: &StatFs) -> Finding {
    let kind = u64::try_from(stats.f_type).unwrap_or_default();
    let kind =
        KINDS.iter().find(|(number, _)| *number == kind).map_or("an unknown file system", |(_, name)| *name);
    let block = u64::try_from(stats.f_bsize).unwrap_or_default();
    let (free, all) = (stats.f_bavail.saturating_mul(block), stats.f_blocks.saturating_mul(block));
    judged(kind, free, all)
}

fn judged(kind: &str, free: u64, all: u64) -> Finding {
    let segment = u64::from(Options::default().segment_bytes);
    let said = format!("{} of {} are free on {kind}", size(free), size(all));
    // A segment, two in reserve, and one of the logs.
    if free < 4 * segment {
        return Finding::fail("disk", format!("{said}: a store needs {} at least", size(4 * segment)));
    }
    if DOUBTFUL.contains(&kind) {
        return Finding::warn("disk", format!("{said}, where what is synced may not be on a disk"));
    }
    Finding::warn_if(free < all / 20, "disk", said)
}

fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB")];
    let (unit, name) = UNITS.into_iter().find(|(unit, _)| bytes >= *unit).unwrap_or((1 << 10, "KiB"));
    format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit)
}

/// Writes and syncs as the store does: into space that was taken before.
fn syncs(place: &Path) -> io::Result<Histogram<u64>> {
    let file = tempfile::Builder::new().prefix("redrive-doctor-").tempfile_in(place)?;
    let (file, bytes) = (file.as_file(), [7; WRITE_BYTES]);
    file.set_len(SYNCS * WRITE_BYTES as u64)?;
    file.sync_all()?;
    let mut times = Histogram::new_with_max(SYNC_US_MAX, 3).map_err(io::Error::other)?;
    for n in 0..SYNCS {
        let began = Instant::now();
        file.write_all_at(&bytes, n * WRITE_BYTES as u64)?;
        fdatasync(file)?;
        times.saturating_record(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX));
    }
    Ok(times)
}

fn latency(times: &Histogram<u64>) -> Finding {
    let (p50, p99) = (times.value_at_quantile(0.5), times.value_at_quantile(0.99));
    let ms = |us: u64| format!("{}.{:02} ms", us / 1_000, us % 1_000 / 10);
    let said = format!("p50 {}, p99 {} of {} syncs", ms(p50), ms(p99), times.len());
    Finding::warn_if(p99 > SLOW_US, "fsync", said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    #[test]
    fn a_full_disk_fails_and_a_doubtful_one_is_told() {
        let gib = 1 << 30;
        assert_eq!(judged("ext4", 50 * gib, 100 * gib).level, Level::Ok);
        assert_eq!(judged("ext4", 4 * gib, 100 * gib).level, Level::Warn);
        assert_eq!(judged("tmpfs", 50 * gib, 100 * gib).level, Level::Warn);
        let full = judged("xfs", 100 << 20, 100 * gib);
        assert_eq!(full.level, Level::Fail);
        assert_eq!(full.sentence, "100.0 MiB of 100.0 GiB are free on xfs: a store needs 128.0 MiB at least");
    }

    #[test]
    fn slow_syncs_are_told() {
        let of = |us: u64| {
            let mut times = Histogram::new_with_max(SYNC_US_MAX, 3).unwrap();
            times.saturating_record(us);
            latency(&times)
        };
        assert_eq!(of(1_234).sentence, "p50 1.23 ms, p99 1.23 ms of 1 syncs");
        assert_eq!((of(1_234).level, of(80_000).level), (Level::Ok, Level::Warn));
    }

    #[test]
    fn what_is_not_there_stands_on_what_is() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(standing(&dir.path().join("a/b/c")), dir.path());
        assert_eq!(found(&dir.path().join("a")).level, Level::Ok);
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert_eq!(found(&dir.path().join("file")).level, Level::Fail);
    }
}
