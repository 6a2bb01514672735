//! discard: any but leased → gone; leased only by force.

use crate::message::{Phase, Progress};

/// Whether a message may be taken away. By force even from a consumer, whose receipt then names nothing.
pub fn may_discard(progress: &Progress, force: bool) -> bool {
    force || !matches!(progress.phase, Phase::Leased(_))
}
