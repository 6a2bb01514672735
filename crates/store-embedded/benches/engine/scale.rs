//! How much of everything: what the bars ask for, or a little of it for a smoke test.

use std::time::Duration;

/// The sizes of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    /// Whether everything is shrunk.
    pub(crate) quick: bool,
    /// Rounds of each pair of arms.
    pub(crate) rounds: usize,
    /// The least time of a sustained arm.
    pub(crate) sustained: Duration,
    /// The time of a shorter arm, which needs no cleaning pass.
    pub(crate) short: Duration,
    /// After this a cleaning pass that does not come to its end is given up, and the table says so.
    pub(crate) patience: Duration,
    /// How long one arm goes on before the other has its turn.
    pub(crate) slice: Duration,
    /// The size of a segment of the journal.
    pub(crate) segment_bytes: u32,
    /// The standing backlog of the life cycles.
    pub(crate) backlog: u64,
    /// The standing backlog of the fairness arms.
    pub(crate) fairness_backlog: u64,
    /// The many fairness keys.
    pub(crate) fairness_keys: u64,
    /// The delayed messages of the cold arm, and as many dead ones.
    pub(crate) cold: u64,
    /// The waiting messages whose memory is measured.
    pub(crate) waiting: u64,
    /// The keys whose memory is measured.
    pub(crate) memory_keys: u64,
    /// Commits of each kind, cleaning and not, whose latency is compared.
    pub(crate) commits: usize,
    /// The messages that the cleaner has to carry during those.
    pub(crate) carried: u64,
    /// Single writes whose median is compared.
    pub(crate) singles: usize,
}

impl Scale {
    pub(crate) fn new(quick: bool) -> Self {
        if quick { Self::quick() } else { Self::full() }
    }

    fn full() -> Self {
        Self {
            quick: false,
            rounds: 3,
            sustained: Duration::from_secs(10),
            short: Duration::from_secs(5),
            patience: Duration::from_mins(3),
            slice: Duration::from_millis(500),
            segment_bytes: 64 << 20,
            backlog: 200_000,
            fairness_backlog: 2_000_000,
            fairness_keys: 1_000_000,
            cold: 1_000_000,
            waiting: 5_000_000,
            memory_keys: 1_000_000,
            commits: 10_000,
            carried: 200_000,
            singles: 4_000,
        }
    }

    fn quick() -> Self {
        Self {
            quick: true,
            rounds: 3,
            sustained: Duration::from_millis(300),
            short: Duration::from_millis(200),
            patience: Duration::from_secs(5),
            slice: Duration::from_millis(50),
            segment_bytes: 4 << 20,
            backlog: 5_000,
            fairness_backlog: 20_000,
            fairness_keys: 10_000,
            cold: 5_000,
            waiting: 50_000,
            memory_keys: 10_000,
            commits: 200,
            carried: 5_000,
            singles: 200,
        }
    }
}
