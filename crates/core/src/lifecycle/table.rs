//! The only list of arrows. Metric labels, event names, the diagram in the docs and the test that no other
//! arrow exists are made from it.

use std::fmt;

use crate::message::State::{self, Dead, Delayed, Done, Leased, Ready};

/// What can happen to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// A producer puts it in.
    Enqueue,
    /// Its time comes. Writes nothing: it follows from the record and the clock.
    Promote,
    /// A consumer takes it.
    Lease,
    /// The consumer, or an operator, moves the deadline.
    Extend,
    /// The consumer is done with it.
    Ack,
    /// The consumer failed; the retry policy judges.
    Nack,
    /// The consumer, or an operator, gives it back unharmed.
    Release,
    /// The lease ran out; the same judge, another cause.
    Expire,
    /// The consumer says: never retry this.
    Bury,
    /// Its time to live passed, or a cap was lowered below what it has used.
    Lapse,
    /// An operator changes when, or how urgently.
    Reschedule,
    /// An operator, or `dead_letter_to`, puts it into another queue.
    Move,
    /// An operator brings it back from the dead.
    Redrive,
    /// An operator, retention or a purge takes it away.
    Discard,
}

impl Verb {
    /// Every verb, in the order of its number.
    pub const ALL: [Self; 14] = [
        Self::Enqueue,
        Self::Promote,
        Self::Lease,
        Self::Extend,
        Self::Ack,
        Self::Nack,
        Self::Release,
        Self::Expire,
        Self::Bury,
        Self::Lapse,
        Self::Reschedule,
        Self::Move,
        Self::Redrive,
        Self::Discard,
    ];

    /// The word used in APIs, metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enqueue => "enqueue",
            Self::Promote => "promote",
            Self::Lease => "lease",
            Self::Extend => "extend",
            Self::Ack => "ack",
            Self::Nack => "nack",
            Self::Release => "release",
            Self::Expire => "expire",
            Self::Bury => "bury",
            Self::Lapse => "lapse",
            Self::Reschedule => "reschedule",
            Self::Move => "move",
            Self::Redrive => "redrive",
            Self::Discard => "discard",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One arrow: `None` stands for outside, before the enqueue or after the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrow {
    /// What causes it.
    pub verb: Verb,
    /// Where it starts.
    pub from: Option<State>,
    /// Where it ends.
    pub to: Option<State>,
}

impl Arrow {
    /// The name of the live event that tells of it; `None` where it is not told.
    pub const fn event(self) -> Option<&'static str> {
        match (self.verb, self.to) {
            (_, Some(Dead)) => Some("move_to_dlq"),
            (Verb::Enqueue, _) => Some("enqueue"),
            (Verb::Lease | Verb::Extend, _) => Some("lease"),
            (Verb::Ack, _) => Some("ack"),
            (Verb::Nack, _) => Some("nack"),
            (Verb::Release | Verb::Expire | Verb::Redrive, _) => Some("requeue"),
            (Verb::Reschedule | Verb::Move | Verb::Discard, _) => Some("queue"),
            (Verb::Promote | Verb::Bury | Verb::Lapse, _) => None,
        }
    }
}

const fn arrow(verb: Verb, from: Option<State>, to: Option<State>) -> Arrow {
    Arrow { verb, from, to }
}

/// Every arrow there is. The ends of a move are in two queues.
pub const ARROWS: &[Arrow] = &[
    arrow(Verb::Enqueue, None, Some(Ready)),
    arrow(Verb::Enqueue, None, Some(Delayed)),
    arrow(Verb::Promote, Some(Delayed), Some(Ready)),
    arrow(Verb::Lease, Some(Ready), Some(Leased)),
    arrow(Verb::Extend, Some(Leased), Some(Leased)),
    arrow(Verb::Ack, Some(Leased), None),
    arrow(Verb::Ack, Some(Leased), Some(Done)),
    arrow(Verb::Nack, Some(Leased), Some(Delayed)),
    arrow(Verb::Nack, Some(Leased), Some(Ready)),
    arrow(Verb::Nack, Some(Leased), Some(Dead)),
    arrow(Verb::Release, Some(Leased), Some(Ready)),
    arrow(Verb::Release, Some(Leased), Some(Delayed)),
    arrow(Verb::Expire, Some(Leased), Some(Delayed)),
    arrow(Verb::Expire, Some(Leased), Some(Ready)),
    arrow(Verb::Expire, Some(Leased), Some(Dead)),
    arrow(Verb::Bury, Some(Leased), Some(Dead)),
    arrow(Verb::Lapse, Some(Ready), Some(Dead)),
    arrow(Verb::Lapse, Some(Delayed), Some(Dead)),
    arrow(Verb::Reschedule, Some(Ready), Some(Delayed)),
    arrow(Verb::Reschedule, Some(Delayed), Some(Ready)),
    arrow(Verb::Reschedule, Some(Ready), Some(Ready)),
    arrow(Verb::Reschedule, Some(Delayed), Some(Delayed)),
    arrow(Verb::Move, Some(Ready), Some(Ready)),
    arrow(Verb::Move, Some(Delayed), Some(Delayed)),
    arrow(Verb::Move, Some(Dead), Some(Ready)),
    arrow(Verb::Move, Some(Done), Some(Done)),
    arrow(Verb::Redrive, Some(Dead), Some(Ready)),
    arrow(Verb::Discard, Some(Ready), None),
    arrow(Verb::Discard, Some(Delayed), None),
    arrow(Verb::Discard, Some(Leased), None),
    arrow(Verb::Discard, Some(Dead), None),
    arrow(Verb::Discard, Some(Done), None),
];

/// Whether the table has that arrow.
pub fn allows(verb: Verb, from: Option<State>, to: Option<State>) -> bool {
    ARROWS.contains(&arrow(verb, from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_has_its_number_its_word_and_an_arrow() {
        for (number, verb) in Verb::ALL.into_iter().enumerate() {
            assert_eq!(verb as usize, number);
            assert_eq!(verb.name(), format!("{verb:?}").to_lowercase());
            assert!(ARROWS.iter().any(|arrow| arrow.verb == verb), "{verb} has no arrow");
        }
    }

    #[test]
    fn no_arrow_stands_twice() {
        for (at, arrow) in ARROWS.iter().enumerate() {
            assert!(!ARROWS[at + 1..].contains(arrow), "{arrow:?}");
        }
    }

    #[test]
    fn only_discard_by_force_and_settling_end_a_lease() {
        let ends: Vec<Verb> = Verb::ALL
            .into_iter()
            .filter(|verb| {
                ARROWS.iter().any(|a| a.verb == *verb && a.from == Some(Leased) && a.to != Some(Leased))
            })
            .collect();
        assert_eq!(ends, [Verb::Ack, Verb::Nack, Verb::Release, Verb::Expire, Verb::Bury, Verb::Discard]);
    }

    #[test]
    fn events_have_the_names_of_the_api() {
        let known = ["enqueue", "lease", "ack", "nack", "requeue", "move_to_dlq", "queue"];
        for arrow in ARROWS {
            assert!(arrow.event().is_none_or(|event| known.contains(&event)), "{arrow:?}");
            assert_eq!(arrow.event() == Some("move_to_dlq"), arrow.to == Some(Dead), "{arrow:?}");
        }
    }
}
