//! The machine that a bench of a server runs on, and what a process of that server has used.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// Ticks of a second in `/proc`, the same on every Linux that Rust runs on.
const TICKS: u64 = 100;

/// One line for each thing of the machine that the figures depend on.
pub(crate) fn print(folder: &Path) {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    println!("cpu        {processors} x {}", cpu());
    println!("kernel     {}", first_line("/proc/sys/kernel/osrelease"));
    println!("filesystem {} at {}", filesystem(folder), folder.display());
}

/// How long so many ticks are.
pub(crate) fn spent(ticks: u64) -> Duration {
    Duration::from_millis(ticks * 1_000 / TICKS)
}

/// The ticks that a process has used, in the fields of its `stat`: those of itself, those of itself and its children.
pub(crate) fn ticks(pid: &str, fields: std::ops::Range<usize>) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name, in brackets, may hold spaces; what is behind it begins with the third field.
    let Some((_, rest)) = stat.rsplit_once(") ") else { return 0 };
    let rest: Vec<&str> = rest.split(' ').collect();
    let wanted = rest.get(fields.start - 2..fields.end - 2).unwrap_or_default();
    wanted.iter().filter_map(|field| field.parse::<u64>().ok()).sum()
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
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mounted = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?, words.next()?))
    });
    mounted
        .filter(|(at, _, _)| dir.starts_with(at))
        .max_by_key(|(at, _, _)| at.len())
        .map_or_else(|| "unknown".to_owned(), |(_, kind, _)| kind.to_owned())
}
