//! lapse: ready | delayed → dead.

use super::attempt::Terms;
use crate::message::{DeadReason, Death, ErrorText, Phase, Progress};
use crate::time::Timestamp;

/// Why a waiting message can never be handed out again; `None` where it can.
pub fn lapse_reason(progress: &Progress, terms: &Terms, now: Timestamp) -> Option<DeadReason> {
    if progress.phase != Phase::Waiting {
        return None;
    }
    if progress.expires_at.is_some_and(|expires_at| expires_at <= now) {
        return Some(DeadReason::ExpiredTtl);
    }
    terms.spent(progress.attempts, progress.deliveries_counted())
}

/// Gives such a message up, grouped with its last error where it has one.
pub fn lapse(progress: &mut Progress, reason: DeadReason, last_error: Option<&ErrorText>, now: Timestamp) {
    let error = last_error.map_or(reason.name(), ErrorText::as_str);
    progress.phase = Phase::Dead(Death::new(reason, now, error));
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::super::attempt::tests::{at, leased, terms, waiting};
    use super::*;

    #[test]
    fn a_message_lapses_when_its_time_passed_or_a_cap_was_lowered() {
        assert_eq!(lapse_reason(&waiting(), &terms(), at(9_000)), None);
        let old = Progress { expires_at: Some(at(5_000)), ..waiting() };
        assert_eq!(lapse_reason(&old, &terms(), at(4_999)), None);
        assert_eq!(lapse_reason(&old, &terms(), at(5_000)), Some(DeadReason::ExpiredTtl));
        let tried = Progress { attempts: 2, deliveries: 9, ..waiting() };
        assert_eq!(lapse_reason(&tried, &terms(), at(9_000)), None);
        let mut lower = terms();
        lower.policy.max_attempts = NonZeroU32::new(2);
        assert_eq!(lapse_reason(&tried, &lower, at(9_000)), Some(DeadReason::MaxAttempts));
        lower = Terms { max_deliveries: NonZeroU32::new(9), ..terms() };
        assert_eq!(lapse_reason(&tried, &lower, at(9_000)), Some(DeadReason::MaxDeliveries));
    }

    #[test]
    fn a_lease_never_lapses() {
        let old = Progress { expires_at: Some(at(2_500)), ..leased() };
        assert_eq!(lapse_reason(&old, &terms(), at(9_000)), None);
    }
}
