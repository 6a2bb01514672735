//! The domain of Redrive: what a message is, what can happen to it, and who decides.
//!
//! * [`message`], [`lease`], [`receipt`], [`queue`]: the things, as types that cannot hold a value a user may
//!   not write; [`limits`] has every bound, [`invalid`] the one error for breaking them.
//! * [`lifecycle`]: the table of transitions and one rule per verb.
//! * [`policy`]: the judge and its backoff, lanes, fairness, the breaker, failure fingerprints.
//! * [`access`]: who may do what, and what a caller shows.
//! * [`topic`]: topics of the event bus and the patterns that match them; [`subscription`]: who gets the events.
//!
//! Nothing here does I/O, waits, or knows what time it is: [`time`] and [`dice`] are arguments. That is what
//! lets one seed replay a history through every store.

pub mod access;
pub mod dice;
pub mod invalid;
pub mod lease;
pub mod lifecycle;
pub mod limits;
pub mod message;
pub mod policy;
pub mod queue;
pub mod receipt;
pub mod subscription;
mod text;
pub mod time;
pub mod topic;
