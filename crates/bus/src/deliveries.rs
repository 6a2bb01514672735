//! The last attempts of each subscription, for people to see: what was sent, what was answered. Kept in memory, at the instance
//! that made them, and not for long.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use redrive_core::message::MessageId;
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::{Millis, Timestamp};

use crate::webhook::Capture;

/// How many attempts are kept for each subscription.
const KEPT_EACH: usize = 20;
/// How many are kept in all; beyond that the oldest go, whoever they belong to.
const KEPT_ALL: usize = 10_000;

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The target has it.
    Delivered,
    /// It failed, for this reason.
    Failed(String),
}

/// One attempt to bring an event to its target.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Which event.
    pub event: MessageId,
    /// The number of the attempt.
    pub attempt: u32,
    /// When it began.
    pub at: Timestamp,
    /// How long it took.
    pub took: Millis,
    /// How it ended.
    pub outcome: Outcome,
    /// What was sent and answered, where it was a webhook.
    pub capture: Option<Capture>,
}

#[derive(Debug, Default)]
struct Kept {
    attempts: HashMap<SubscriptionId, VecDeque<Attempt>>,
    /// Whose attempts they are, the oldest first.
    order: VecDeque<SubscriptionId>,
}

/// The last attempts.
#[derive(Debug, Default)]
pub(crate) struct Deliveries(Mutex<Kept>);

impl Deliveries {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note(&self, subscription: &SubscriptionId, attempt: Attempt) {
        let mut kept = self.lock();
        let own = kept.attempts.entry_ref(subscription).or_default();
        let full = own.len() == KEPT_EACH;
        if full {
            own.pop_front();
        }
        own.push_back(attempt);
        if full {
            return;
        }
        kept.order.push_back(subscription.clone());
        if kept.order.len() > KEPT_ALL
            && let Some(oldest) = kept.order.pop_front()
            && let Some(own) = kept.attempts.get_mut(&oldest)
        {
            own.pop_front();
            if own.is_empty() {
                kept.attempts.remove(&oldest);
            }
        }
    }

    /// The last attempts of a subscription, the newest first.
    pub(crate) fn of(&self, subscription: &SubscriptionId) -> Vec<Attempt> {
        self.lock().attempts.get(subscription).into_iter().flatten().rev().cloned().collect()
    }

    pub(crate) fn forget(&self, subscription: &SubscriptionId) {
        let mut kept = self.lock();
        kept.attempts.remove(subscription);
        kept.order.retain(|owner| owner != subscription);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(number: u32) -> Attempt {
        Attempt {
            event: MessageId::MIN,
            attempt: number,
            at: Timestamp::EPOCH,
            took: Millis::ZERO,
            outcome: Outcome::Delivered,
            capture: None,
        }
    }

    #[test]
    fn the_last_few_are_kept_and_never_more_than_so_many_in_all() {
        let deliveries = Deliveries::default();
        let id = |n: usize| SubscriptionId::new(format!("s{n}")).unwrap();
        for number in 0..50 {
            deliveries.note(&id(0), attempt(number));
        }
        let kept: Vec<u32> = deliveries.of(&id(0)).iter().map(|attempt| attempt.attempt).collect();
        assert_eq!(kept, (30..50).rev().collect::<Vec<u32>>());
        for n in 1..=KEPT_ALL {
            deliveries.note(&id(n), attempt(1));
        }
        assert!(deliveries.of(&id(0)).is_empty(), "the oldest went");
        assert_eq!(deliveries.lock().order.len(), KEPT_ALL);
        deliveries.forget(&id(KEPT_ALL));
        assert!(deliveries.of(&id(KEPT_ALL)).is_empty());
    }
}
