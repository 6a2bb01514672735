//! The states of a breaker, and what is told when one gives way to another.

use super::window::Tally;
use crate::time::Timestamp;

/// Where a breaker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BreakerState {
    /// Work flows; outcomes are counted.
    Closed,
    /// Nothing is handed out.
    Open,
    /// One probe at a time.
    HalfOpen,
}

impl BreakerState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Closed, Self::Open, Self::HalfOpen];

    /// The name in events, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// The breaker went from one state to another: an event, a log line and a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The state before.
    pub from: BreakerState,
    /// The state after.
    pub to: BreakerState,
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: ChangeReason,
}

/// Why a breaker changed its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeReason {
    /// Too many messages of the window failed.
    FailureShare(Tally),
    /// It was open for its time.
    OpenElapsed,
    /// The probe succeeded.
    ProbeSucceeded,
    /// The probe failed.
    ProbeFailed,
    /// An operator tripped or reset it.
    Operator,
    /// Another instance changed the shared row.
    Adopted,
}

impl ChangeReason {
    /// The name in events, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FailureShare(_) => "failure_share",
            Self::OpenElapsed => "open_elapsed",
            Self::ProbeSucceeded => "probe_succeeded",
            Self::ProbeFailed => "probe_failed",
            Self::Operator => "operator",
            Self::Adopted => "adopted",
        }
    }
}
