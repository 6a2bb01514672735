//! bury: leased → dead.

use super::attempt::{Ended, end};
use crate::lease::Lease;
use crate::message::{Cause, DeadReason, ErrorText, Progress};
use crate::policy::Verdict;
use crate::time::Timestamp;

/// Gives a message up because its consumer says so.
pub fn bury(
    progress: &mut Progress,
    lease: Lease,
    (reason, error): (DeadReason, ErrorText),
    now: Timestamp,
) -> Ended {
    let sequence = progress.sequence;
    end(progress, lease, Verdict::Dead(reason), (Cause::Bury, error), sequence, now)
}
