//! lease: ready → leased.

use crate::lease::{ConsumerName, Lease, LeaseId};
use crate::lifecycle::{Terms, lapse_reason};
use crate::message::{Phase, Progress, State};
use crate::queue::QueueSettings;
use crate::time::{Millis, Timestamp};

/// Whether a message may be handed out at all: it is due, not too old, and has a delivery left.
pub fn may_lease(progress: &Progress, terms: &Terms, now: Timestamp) -> bool {
    progress.state(now) == State::Ready && lapse_reason(progress, terms, now).is_none()
}

/// How long a lease lasts: what the call asks for, else what the message wants, else what the queue says; never
/// longer than the queue's `max_lease`.
pub fn lease_time(settings: &QueueSettings, message: Option<Millis>, call: Option<Millis>) -> Millis {
    call.or(message).unwrap_or(settings.lease_timeout).min(settings.max_lease)
}

/// Hands a message out. The attempt is charged here and not when it fails: a consumer that dies without a word
/// has had its attempt.
pub fn lease(progress: &mut Progress, id: LeaseId, consumer: ConsumerName, time: Millis, now: Timestamp) {
    progress.attempts = progress.attempts.saturating_add(1);
    progress.deliveries = progress.deliveries.saturating_add(1);
    progress.phase = Phase::Leased(Lease { id, consumer, leased_at: now, deadline: now.plus(time) });
}

#[cfg(test)]
mod tests {
    use super::super::attempt::tests::{at, leased, terms, waiting};
    use super::*;
    use crate::message::Lane;

    #[test]
    fn taking_a_lease_charges_the_attempt() {
        let progress = leased();
        assert_eq!((progress.attempts, progress.deliveries), (1, 1));
        assert_eq!(progress.lease().unwrap().deadline, at(32_000));
        assert_eq!(progress.lane(), Lane::Fresh, "it was leased from the fresh lane");
    }

    #[test]
    fn only_a_due_message_with_a_delivery_left_may_be_leased() {
        assert!(may_lease(&waiting(), &terms(), at(1_000)));
        assert!(!may_lease(&waiting(), &terms(), at(999)), "one millisecond early");
        assert!(!may_lease(&leased(), &terms(), at(99_000)), "an overdue lease is still a lease");
        let spent = Progress { attempts: 3, ..waiting() };
        assert!(!may_lease(&spent, &terms(), at(1_000)), "no attempt left");
        let old = Progress { expires_at: Some(at(1_500)), ..waiting() };
        assert!(may_lease(&old, &terms(), at(1_499)));
        assert!(!may_lease(&old, &terms(), at(1_500)), "too old");
    }

    #[test]
    fn the_call_beats_the_message_beats_the_queue_and_max_lease_beats_all() {
        let settings = QueueSettings {
            max_lease: Millis::new(100),
            lease_timeout: Millis::new(10),
            ..Default::default()
        };
        let time = |message: Option<u64>, call: Option<u64>| {
            lease_time(&settings, message.map(Millis::new), call.map(Millis::new)).get()
        };
        assert_eq!([time(None, None), time(Some(20), None), time(Some(20), Some(30))], [10, 20, 30]);
        assert_eq!(time(None, Some(1_000)), 100);
    }
}
