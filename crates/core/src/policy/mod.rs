//! The rules that decide: when a failure is retried, who is served next, when to stop trying.

mod breaker;
mod fairness;
mod fingerprint;
mod judge;
mod lanes;
mod retry;
mod schedule;

pub use breaker::{
    Allowance, Breaker, BreakerConfig, BreakerRow, BreakerState, Change, ChangeReason, Footing, Outcome,
    ProbeSlot, ProbeTicket, RAMP_LIMIT_MAX, Tally,
};
pub use fairness::{Ring, Standing, Weight};
pub use fingerprint::{Fingerprint, normalise};
pub use judge::{Asked, DelayRule, Failure, Sentence, Verdict, judge, sentence};
pub use lanes::{LaneCredit, RetryLane, Share};
pub use retry::{Jitter, Multiplier, RetryOverride, RetryPolicy};
pub use schedule::PlannedRetry;
