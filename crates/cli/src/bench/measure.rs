//! Time, and what is made of a row of figures.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use hdrhistogram::Histogram;

/// How large the file is into which a bare sync writes, round and round.
const SYNC_FILE_BYTES: usize = 4 << 20;

/// Runs from when it is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "how long something takes is what a bench is for")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Lets time pass, because a span of it is what is measured.
#[expect(clippy::disallowed_methods, reason = "a server that does nothing is looked at for a while")]
pub(crate) async fn idle(time: Duration) {
    tokio::time::sleep(time).await;
}

/// The value that as many are below as above.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
    }
}

/// How long things took, from microseconds to minutes.
#[derive(Debug)]
pub(crate) struct Latencies(Histogram<u64>);

impl Latencies {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, 120_000_000, 3);
        Self(histogram.expect("the bounds are in order, and the digits are few"))
    }

    pub(crate) fn add(&mut self, took: Duration) {
        self.0.saturating_record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    pub(crate) fn join(&mut self, other: &Self) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    /// What so many of a hundred do not exceed, in milliseconds.
    pub(crate) fn percentile_ms(&self, percent: f64) -> f64 {
        self.0.value_at_percentile(percent) as f64 / 1e3
    }
}

/// A file into which a write and its sync are measured, as a journal does them at best.
#[derive(Debug)]
pub(crate) struct BareSync {
    file: File,
    block: Vec<u8>,
    offset: u64,
}

impl BareSync {
    /// Every block of it has been written once, as those are that a journal recycles.
    pub(crate) fn prepare(path: &Path, bytes: usize) -> anyhow::Result<Self> {
        let file = OpenOptions::new().create(true).truncate(true).write(true).open(path);
        let file = file.with_context(|| format!("creating {}", path.display()))?;
        file.write_all_at(&vec![0x5a; SYNC_FILE_BYTES], 0)?;
        file.sync_all()?;
        Ok(Self { file, block: vec![0xa5; bytes], offset: 0 })
    }

    /// Writes and syncs; answers how long that took.
    pub(crate) fn commit(&mut self) -> anyhow::Result<Duration> {
        let watch = Stopwatch::start();
        self.file.write_all_at(&self.block, self.offset)?;
        self.file.sync_data()?;
        let next = self.offset + 2 * self.block.len() as u64;
        self.offset = if next > SYNC_FILE_BYTES as u64 { 0 } else { self.offset + self.block.len() as u64 };
        Ok(watch.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < f64::EPSILON);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_bare_sync_stays_inside_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sync");
        let mut bare = BareSync::prepare(&path, 1_500_000).unwrap();
        for _ in 0..5 {
            bare.commit().unwrap();
        }
        assert_eq!(std::fs::metadata(path).unwrap().len(), SYNC_FILE_BYTES as u64);
    }
}
