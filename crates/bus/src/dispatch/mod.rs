//! Dispatch: takes events out of their queues and brings them to their targets.
//!
//! `pump` leases as much as may be under way and runs it. `independent` is one delivery of one subscription: the queue is the
//! subscription's own, and its judge and its breaker decide. `sequential` is one event for several, one after another.
//! `attempt` is what both do to a target: once, within its time, whatever the target is; `settle` is what they say of it.

mod attempt;
mod in_flight;
mod independent;
mod pump;
mod sequential;
mod settle;

pub(crate) use attempt::Failure;
pub(crate) use in_flight::InFlight;
pub(crate) use pump::{Pump, Pumps};
pub(crate) use sequential::{SequencePoint, merged_policy, sequence_config};

use futures::future::BoxFuture;
use redrive_core::lease::LeaseId;
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::{Millis, Timestamp};

use crate::event::Event;

/// What a handler is given.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// The event.
    pub event: Event,
    /// For which subscription.
    pub subscription: SubscriptionId,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// When it is cut off.
    pub deadline: Timestamp,
    /// A number that is larger at every attempt, to fence writes with.
    pub lease_id: Option<LeaseId>,
}

/// Why a handler did not do it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandlerFailure {
    /// It may be tried again, not before that time has passed where one is given.
    Retry {
        /// What went wrong.
        error: String,
        /// How long to wait at least.
        after: Option<Millis>,
    },
    /// It will never work.
    Bury {
        /// What is wrong with it.
        error: String,
    },
    /// Nothing is wrong with it, but not now: it goes back, and the attempt does not count.
    Release {
        /// How long to wait at least.
        after: Option<Millis>,
    },
}

/// A function of this process to which events are brought. It is dropped when its time is over.
pub trait Handler: Send + Sync + 'static {
    /// Handles one event.
    fn handle(&self, incoming: Incoming) -> BoxFuture<'static, Result<(), HandlerFailure>>;
}

impl<F> Handler for F
where
    F: Fn(Incoming) -> BoxFuture<'static, Result<(), HandlerFailure>> + Send + Sync + 'static,
{
    fn handle(&self, incoming: Incoming) -> BoxFuture<'static, Result<(), HandlerFailure>> {
        self(incoming)
    }
}
