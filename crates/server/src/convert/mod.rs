//! Between what goes over the wire and what the domain knows. What comes in is checked here; what goes out cannot fail.

pub(crate) mod event;
pub(crate) mod filter;
pub(crate) mod key;
pub(crate) mod message;
pub(crate) mod operation;
pub(crate) mod overview;
pub(crate) mod queue;
pub(crate) mod subscription;
pub(crate) mod topic;

use axum::http::HeaderMap;
use redrive_broker::TraceParent;
use redrive_core::invalid::Invalid;
use redrive_core::lifecycle::When;
use redrive_core::limits::{DELAY_MAX, LEASE_MAX};
use redrive_core::policy::Asked;
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

/// The trace that a request is a part of. Two headers that may say different things say nothing.
pub(crate) fn trace_parent(headers: &HeaderMap) -> Option<TraceParent> {
    let mut values = headers.get_all(TraceParent::HEADER).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    TraceParent::parse(value.to_str().ok()?)
}

/// When something is to happen: after a span or at a time.
pub(crate) fn when(
    field: &'static str,
    after: Option<u64>,
    at: Option<Timestamp>,
) -> Result<Option<When>, Invalid> {
    match (after, at) {
        (Some(_), Some(_)) => Err(Invalid::unusable(field, "a span and a time must not both be given")),
        (Some(0), None) if field == "delay_ms" => Ok(Some(When::Now)),
        (Some(ms), None) => Ok(Some(When::After(Millis::new(ms)))),
        (None, Some(at)) => Ok(Some(When::At(at))),
        (None, None) => Ok(None),
    }
}

/// A delay that a consumer asks for. The store limits it, too, but it sees only the items whose receipts are right.
pub(crate) fn delay(ms: Option<u64>) -> Result<Option<Millis>, Invalid> {
    millis(ms).map(|delay| delay.within("delay_ms", Millis::ZERO, DELAY_MAX)).transpose()
}

/// For how long a lease is to go on, limited here for the same reason.
pub(crate) fn extension(ms: Option<u64>) -> Result<Option<Millis>, Invalid> {
    millis(ms).map(|time| time.within("lease_ms", Millis::ZERO, LEASE_MAX)).transpose()
}

/// When a consumer wants what failed back.
pub(crate) fn asked(ms: Option<u64>, exact: bool) -> Result<Asked, Invalid> {
    match (delay(ms)?, exact) {
        (None, false) => Ok(Asked::Nothing),
        (None, true) => Err(Invalid::unusable("delay_ms", "must be given where exact is")),
        (Some(delay), false) => Ok(Asked::AtLeast(delay)),
        (Some(delay), true) => Ok(Asked::Exactly(delay)),
    }
}
