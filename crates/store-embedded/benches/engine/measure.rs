//! Time, CPU and memory of this process, and what is made of a row of them.

use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Runs from when it is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    started: Instant,
    cpu: Duration,
}

/// What a stopwatch says.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lap {
    /// How long it took.
    pub(crate) wall: Duration,
    /// What the whole process used, user and system.
    pub(crate) cpu: Duration,
}

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "how long something takes is what a bench is for")]
    pub(crate) fn start() -> Self {
        Self { started: Instant::now(), cpu: cpu_time() }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn lap(&self) -> Lap {
        Lap { wall: self.elapsed(), cpu: cpu_time().saturating_sub(self.cpu) }
    }
}

/// How long the work took.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let watch = Stopwatch::start();
    let result = work();
    (result, watch.elapsed())
}

/// What the process has used so far, user and system, all threads together.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let (secs, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(secs.expect("CPU time is positive"), nanos.expect("less than a second"))
}

/// The memory that the process has in RAM now, in bytes.
pub(crate) fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells what a process has in RAM");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a process has memory");
    let kib = line.trim().trim_end_matches(" kB").trim();
    kib.parse::<u64>().expect("a number of KiB") * 1_024
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

/// Durations of which only the order counts.
#[derive(Debug, Default)]
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    pub(crate) fn push(&mut self, latency: Duration) {
        self.0.push(latency);
    }

    pub(crate) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The latency that `per_mille` thousandths of all do not exceed; zero where there are none.
    pub(crate) fn quantile(&mut self, per_mille: usize) -> Duration {
        self.0.sort_unstable();
        let at = (self.0.len() * per_mille).div_ceil(1_000).saturating_sub(1);
        self.0.get(at).copied().unwrap_or_default()
    }
}

/// A duration in microseconds.
pub(crate) fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}
