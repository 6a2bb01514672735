//! Between what goes over the wire and what the domain knows. What comes in is checked here; what goes out cannot fail.

pub(crate) mod event;
pub(crate) mod filter;
pub(crate) mod message;
pub(crate) mod operation;
pub(crate) mod queue;

use redrive_core::time::{Millis, Timestamp};
use redrive_wire::Time;

pub(crate) const fn time(at: Timestamp) -> Time {
    Time(at.as_millis())
}

pub(crate) const fn timestamp(time: Time) -> Timestamp {
    Timestamp::from_millis(time.0)
}

pub(crate) fn millis(ms: Option<u64>) -> Option<Millis> {
    ms.map(Millis::new)
}
