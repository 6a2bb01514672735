//! What is kept in memory of a message: one entry of fixed size, and more only for those that have more.

use std::num::NonZeroU32;

use redrive_core::lease::{ConsumerName, LeaseId};
use redrive_core::message::{Death, Lane, Priority};
use redrive_core::time::{Millis, Timestamp};

use crate::format::Place;

/// No entry, no line, nothing.
pub(crate) const NONE: u32 = u32::MAX;

/// Where a message is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Waiting, among those whose time has not come.
    Delayed,
    /// Waiting, in the line of its key, between `before` and `after`.
    Line,
    /// Waiting beside the line: it came back to a place that is not the last.
    Stray,
    /// Waiting to lapse: it can never be handed out again.
    Aside,
    /// With a consumer.
    Leased,
    /// Given up.
    Dead,
    /// Succeeded, and kept.
    Done,
}

impl Stage {
    pub(crate) fn is_waiting(self) -> bool {
        matches!(self, Self::Delayed | Self::Line | Self::Stray | Self::Aside)
    }
}

/// What every message has.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    id: [u64; 2],
    /// Its base.
    pub(crate) at: Place,
    pub(crate) visible_at: Timestamp,
    pub(crate) sequence: u64,
    /// How long its base is.
    pub(crate) length: u32,
    /// What body and headers weigh.
    pub(crate) load: u32,
    pub(crate) queue: u32,
    pub(crate) key: u32,
    pub(crate) attempts: u32,
    pub(crate) deliveries: u32,
    /// The neighbours in the line; for a leased message `before` is its lease, for a dead or done one its end.
    pub(crate) before: u32,
    pub(crate) after: u32,
    /// Its [`Extra`], if it has one.
    pub(crate) extra: u32,
    pub(crate) class: u16,
    /// The priority, and [`CHANGED`].
    priority: u8,
    pub(crate) stage: Stage,
}

/// The bit that says that the message does not stand any more where its base says.
const CHANGED: u8 = 0x80;

impl Entry {
    pub(crate) fn new(id: u128, at: Place, length: u32, queue: u32) -> Self {
        Self {
            id: split(id),
            at,
            visible_at: Timestamp::EPOCH,
            sequence: 0,
            length,
            load: 0,
            queue,
            key: NONE,
            attempts: 0,
            deliveries: 0,
            before: NONE,
            after: NONE,
            extra: NONE,
            class: 0,
            priority: 0,
            stage: Stage::Aside,
        }
    }

    pub(crate) fn id(&self) -> u128 {
        u128::from(self.id[0]) << 64 | u128::from(self.id[1])
    }

    pub(crate) fn priority(&self) -> Priority {
        Priority::new(self.priority & !CHANGED).unwrap_or_default()
    }

    pub(crate) fn set_priority(&mut self, priority: Priority) {
        self.priority = priority.get() | (self.priority & CHANGED);
    }

    /// Whether something happened to the message since its base was written.
    pub(crate) fn is_changed(&self) -> bool {
        self.priority & CHANGED != 0
    }

    pub(crate) fn set_changed(&mut self, changed: bool) {
        self.priority = (self.priority & !CHANGED) | if changed { CHANGED } else { 0 };
    }

    /// Its place in the line.
    pub(crate) fn place(&self) -> (Timestamp, u64) {
        (self.visible_at, self.sequence)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "both halves are kept")]
const fn split(id: u128) -> [u64; 2] {
    [(id >> 64) as u64, id as u64]
}

/// What only some messages have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extra {
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) deliveries_before: u32,
    pub(crate) redrives: u32,
    pub(crate) max_attempts: Option<NonZeroU32>,
    pub(crate) lease_timeout: Option<Millis>,
    /// The digest of the dedup key that it holds while it is not done.
    pub(crate) unique: Option<u128>,
    /// It was moved, and lost the dedup key that its base names.
    pub(crate) moved: bool,
    /// The newest link of its history, with its length.
    pub(crate) link: Option<(Place, u32)>,
    pub(crate) links: u32,
    /// How many bytes its links take.
    pub(crate) link_bytes: u32,
    /// How long its checkpoint is.
    pub(crate) checkpoint: u32,
    /// Its base has a history.
    pub(crate) past: bool,
}

impl Extra {
    pub(crate) fn is_default(&self) -> bool {
        self.expires_at.is_none()
            && self.deliveries_before == 0
            && self.redrives == 0
            && self.max_attempts.is_none()
            && self.lease_timeout.is_none()
            && self.unique.is_none()
            && !self.moved
            && self.link.is_none()
            && self.checkpoint == 0
            && !self.past
    }
}

/// What a leased message has.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) id: LeaseId,
    pub(crate) consumer: ConsumerName,
    pub(crate) leased_at: Timestamp,
    pub(crate) deadline: Timestamp,
}

/// What a dead or done message has.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Dead(Death),
    Done(Timestamp),
}

impl End {
    pub(crate) fn at(self) -> Timestamp {
        match self {
            Self::Dead(death) => death.at,
            Self::Done(at) => at,
        }
    }
}

/// The lane of a message with so many attempts charged before this one, and so many redrives.
pub(crate) fn lane(charged: u32, redrives: u32) -> Lane {
    if charged == 0 && redrives == 0 { Lane::Fresh } else { Lane::Retry }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_stays_small() {
        assert_eq!(size_of::<Entry>(), 80, "every byte is paid once for each message");
    }
}
