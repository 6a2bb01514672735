//! What the figures were measured on, and where the files go.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::bare::Bare;
use crate::measure::{Latencies, micros, timed};

/// The folder of a run. What is in it goes when the run ends.
#[derive(Debug)]
pub(crate) struct Place(TempDir);

impl Place {
    /// Inside of `dir`, or of cargo's target folder, which is on a real disk wherever the sources are.
    pub(crate) fn new(dir: Option<&Path>) -> io::Result<Self> {
        let dir = dir.unwrap_or(Path::new(env!("CARGO_TARGET_TMPDIR")));
        fs::create_dir_all(dir)?;
        Ok(Self(tempfile::Builder::new().prefix("bench-engine-").tempdir_in(dir)?))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// A folder of that name, empty, whoever had it before.
    pub(crate) fn fresh(&self, name: &str) -> PathBuf {
        let path = self.0.path().join(name);
        self.clear(name);
        fs::create_dir_all(&path).expect("a folder can be made");
        path
    }

    /// Gives the space of a folder back.
    pub(crate) fn clear(&self, name: &str) {
        let path = self.0.path().join(name);
        if path.exists() {
            fs::remove_dir_all(path).expect("a folder of ours can be removed");
        }
    }
}

/// One line for each thing that the figures depend on.
pub(crate) fn print_header(dir: &Path) {
    println!("cpu        {} x {}", std::thread::available_parallelism().map_or(1, usize::from), cpu());
    println!("kernel     {}", first_line("/proc/sys/kernel/osrelease"));
    println!("filesystem {} at {}", filesystem(dir), dir.display());
    println!("fdatasync  p50 {:.0} us after 1 KiB into a recycled file", sync_p50(dir));
}

fn cpu() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name"));
    model.and_then(|line| line.split_once(':')).map_or("unknown", |(_, name)| name.trim()).to_owned()
}

fn first_line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().lines().next().unwrap_or("unknown").to_owned()
}

/// The type of the file system that is mounted nearest above `dir`.
fn filesystem(dir: &Path) -> String {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mounted = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?, words.next()?))
    });
    mounted
        .filter(|(at, _, _)| dir.starts_with(at))
        .max_by_key(|(at, _, _)| at.len())
        .map_or_else(|| "unknown".to_owned(), |(_, kind, options)| format!("{kind} ({options})"))
}

fn sync_p50(dir: &Path) -> f64 {
    let folder = dir.join("sync");
    let mut bare = Bare::prepare(&folder, 1, 4 << 20);
    let mut latencies = Latencies::default();
    for _ in 0..500 {
        latencies.push(timed(|| bare.commit(1_024)).1);
    }
    fs::remove_dir_all(folder).expect("a folder of ours can be removed");
    micros(latencies.quantile(500))
}
