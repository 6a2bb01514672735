//! The sliding window: which messages had an outcome lately, and how many of them failed.

use std::collections::{BTreeMap, BTreeSet};

use crate::limits::BREAKER_WINDOW_MESSAGES_MAX;
use crate::message::MessageId;
use crate::time::{Millis, Timestamp};

/// What the window holds at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Messages with an outcome.
    pub messages: u32,
    /// Those whose latest outcome is a failure.
    pub failed: u32,
}

/// The latest outcome of each message, by message and by age. At most
/// [`BREAKER_WINDOW_MESSAGES_MAX`] messages; the oldest outcome makes room.
#[derive(Debug, Clone, Default)]
pub(super) struct Window {
    outcomes: BTreeMap<MessageId, Latest>,
    by_age: BTreeSet<(Timestamp, MessageId)>,
    failed: u32,
}

#[derive(Debug, Clone, Copy)]
struct Latest {
    at: Timestamp,
    failed: bool,
}

impl Window {
    /// Notes an outcome in place of the message's earlier one: a message that fails ten times is one failure.
    pub(super) fn note(&mut self, at: Timestamp, message: MessageId, failed: bool) {
        self.forget(message);
        while self.outcomes.len() >= BREAKER_WINDOW_MESSAGES_MAX && self.forget_oldest() {}
        self.outcomes.insert(message, Latest { at, failed });
        self.by_age.insert((at, message));
        self.failed = self.failed.saturating_add(u32::from(failed));
    }

    /// Lets go of every outcome that is `span` old or older.
    pub(super) fn slide(&mut self, now: Timestamp, span: Millis) {
        while self.by_age.first().is_some_and(|(at, _)| now.since(*at) >= span) && self.forget_oldest() {}
    }

    /// The counts as of the last slide.
    pub(super) fn tally(&self) -> Tally {
        let messages = u32::try_from(self.outcomes.len()).unwrap_or(u32::MAX);
        Tally { messages, failed: self.failed }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn forget_oldest(&mut self) -> bool {
        let oldest = self.by_age.first().copied();
        oldest.is_some_and(|(_, message)| self.forget(message))
    }

    fn forget(&mut self, message: MessageId) -> bool {
        let Some(latest) = self.outcomes.remove(&message) else {
            return false;
        };
        self.by_age.remove(&(latest.at, message));
        self.failed = self.failed.saturating_sub(u32::from(latest.failed));
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SPAN: Millis = Millis::new(1_000);

    fn message(number: usize) -> MessageId {
        MessageId::new(Timestamp::EPOCH, number as u128)
    }

    /// Counts from the whole history: the last outcome of each message, if it is young enough.
    fn recount(history: &[(Timestamp, usize, bool)], now: Timestamp) -> Tally {
        let mut tally = Tally::default();
        for (index, (at, number, failed)) in history.iter().enumerate() {
            let superseded = history.iter().skip(index + 1).any(|(_, later, _)| later == number);
            if !superseded && now.since(*at) < SPAN {
                tally.messages += 1;
                tally.failed += u32::from(*failed);
            }
        }
        tally
    }

    proptest! {
        #[test]
        fn the_window_counts_what_a_naive_recount_counts(
            steps in prop::collection::vec((0u64..400, 0usize..12, any::<bool>()), 1..120),
        ) {
            let (mut window, mut history, mut now) = (Window::default(), Vec::new(), Timestamp::EPOCH);
            for (passed, number, failed) in steps {
                now = now.plus(Millis::new(passed));
                window.note(now, message(number), failed);
                history.push((now, number, failed));
                window.slide(now, SPAN);
                prop_assert_eq!(window.tally(), recount(&history, now));
            }
        }

        #[test]
        fn both_indexes_agree_whatever_the_clock_does(
            steps in prop::collection::vec((0u64..5_000, 0usize..12, any::<bool>()), 1..120),
        ) {
            let mut window = Window::default();
            for (at, number, failed) in steps {
                let at = Timestamp::from_millis(at);
                window.note(at, message(number), failed);
                window.slide(at, SPAN);
                prop_assert_eq!(window.outcomes.len(), window.by_age.len());
                let failed = window.outcomes.values().filter(|latest| latest.failed).count();
                prop_assert_eq!(window.failed as usize, failed);
            }
        }
    }

    #[test]
    fn an_outcome_counts_until_it_is_as_old_as_the_window() {
        let mut window = Window::default();
        window.note(Timestamp::EPOCH, message(1), true);
        window.slide(Timestamp::from_millis(999), SPAN);
        assert_eq!(window.tally(), Tally { messages: 1, failed: 1 });
        window.slide(Timestamp::from_millis(1_000), SPAN);
        assert_eq!(window.tally(), Tally::default());
    }

    #[test]
    fn a_full_window_forgets_its_oldest_outcome_first() {
        let mut window = Window::default();
        let extra = 10;
        for number in 0..BREAKER_WINDOW_MESSAGES_MAX + extra {
            window.note(Timestamp::from_millis(number as u64), message(number), number < extra);
        }
        assert_eq!(window.outcomes.len(), BREAKER_WINDOW_MESSAGES_MAX);
        assert_eq!(window.tally().failed, 0, "the failures were the oldest");
        assert!(!window.outcomes.contains_key(&message(extra - 1)));
        assert!(window.outcomes.contains_key(&message(extra)));
    }

    #[test]
    fn a_repeated_outcome_in_a_full_window_pushes_nobody_out() {
        let mut window = Window::default();
        for number in 0..BREAKER_WINDOW_MESSAGES_MAX {
            window.note(Timestamp::EPOCH, message(number), false);
        }
        window.note(Timestamp::from_millis(1), message(7), true);
        assert_eq!(window.outcomes.len(), BREAKER_WINDOW_MESSAGES_MAX);
        assert!(window.outcomes.contains_key(&message(0)));
    }
}
