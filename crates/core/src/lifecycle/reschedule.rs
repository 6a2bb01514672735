//! reschedule: ready ↔ delayed, or another priority.

use super::When;
use crate::invalid::Invalid;
use crate::message::{Phase, Priority, Progress};
use crate::time::Timestamp;

/// What an operator wants changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Reschedule {
    /// From when on it may be leased.
    pub visible: Option<When>,
    /// How urgent it is among those of its key.
    pub priority: Option<Priority>,
}

impl Reschedule {
    /// Refuses a wait beyond its limit, naming the field.
    pub fn check(&self) -> Result<(), Invalid> {
        self.visible.unwrap_or_default().check("delay")
    }
}

/// Changes when, or how urgently, a waiting message is served; `false`, and nothing happens, for any other.
/// A new time means the back of the line at that time.
pub fn reschedule(progress: &mut Progress, change: &Reschedule, sequence: u64, now: Timestamp) -> bool {
    if progress.phase != Phase::Waiting {
        return false;
    }
    if let Some(visible) = change.visible {
        progress.visible_at = visible.at(now);
        progress.sequence = sequence;
    }
    if let Some(priority) = change.priority {
        progress.priority = priority;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::attempt::tests::{at, leased, waiting};
    use super::*;
    use crate::time::Millis;

    #[test]
    fn another_priority_keeps_the_place() {
        let mut progress = waiting();
        let change = Reschedule { visible: None, priority: Some(Priority::MAX) };
        assert!(reschedule(&mut progress, &change, 99, at(5_000)));
        assert_eq!(progress, Progress { priority: Priority::MAX, ..waiting() });
    }

    #[test]
    fn another_time_goes_to_the_back() {
        let mut progress = waiting();
        let change = Reschedule { visible: Some(When::After(Millis::new(10))), priority: None };
        assert!(reschedule(&mut progress, &change, 99, at(5_000)));
        assert_eq!((progress.visible_at, progress.sequence), (at(5_010), 99));
    }

    #[test]
    fn a_lease_is_left_alone() {
        let mut progress = leased();
        let change = Reschedule { visible: Some(When::Now), priority: Some(Priority::MIN) };
        assert!(!reschedule(&mut progress, &change, 99, at(5_000)));
        assert_eq!(progress, leased());
    }
}
