//! Traces: a message carries the context of its trace in its `traceparent` header, and every attempt is a span in it.
//!
//! The broker says what happened, from when to when, and in which trace; what becomes of that, a [`Tracing`] knows.
//! Without one nothing is made here, and the context of a request still travels with its messages.

mod attempt;
mod context;
mod send;
mod span;

use std::fmt::Debug;
use std::num::{NonZeroU64, NonZeroU128};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redrive_core::limits::TRACED_ATTEMPTS_MAX;

pub(crate) use attempt::{Ended, Which};
pub use context::{TraceParent, TraceRatio};
pub use span::{Attempted, Failure, HowEnded, Sent, Span, Tracing};

use crate::chance::Chance;
use attempt::Attempts;

/// How attempts are traced.
#[derive(Debug, Clone)]
pub struct TraceConfig {
    /// Who is told.
    pub tracing: Arc<dyn Tracing>,
    /// How many of the traces that begin here are sampled.
    pub ratio: TraceRatio,
    /// How many attempts are traced at a time; more go untraced.
    pub attempts_max: usize,
}

impl TraceConfig {
    /// Traces everything, within the usual limit.
    pub fn new(tracing: Arc<dyn Tracing>) -> Self {
        Self { tracing, ratio: TraceRatio::ALL, attempts_max: TRACED_ATTEMPTS_MAX }
    }
}

/// What a broker that traces has to know.
#[derive(Debug)]
pub(crate) struct Traces {
    tracing: Arc<dyn Tracing>,
    ratio: TraceRatio,
    attempts: Mutex<Attempts>,
}

impl Traces {
    pub(crate) fn new(config: &TraceConfig) -> Self {
        Self {
            tracing: Arc::clone(&config.tracing),
            ratio: config.ratio,
            attempts: Mutex::new(Attempts::new(config.attempts_max)),
        }
    }

    /// The context of a new span: in its parent's trace, or in a new one.
    fn begin(&self, parent: Option<TraceParent>, chance: &Chance) -> TraceParent {
        let span = NonZeroU64::new(chance.seed()).unwrap_or(NonZeroU64::MIN);
        let new = || {
            let trace = u128::from(chance.seed()) << 64 | u128::from(chance.seed());
            self.ratio.root(NonZeroU128::new(trace).unwrap_or(NonZeroU128::MIN), span)
        };
        parent.map_or_else(new, |parent| parent.child(span))
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
