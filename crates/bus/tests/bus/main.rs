//! The bus over a store in memory, in a time that passes as fast as nobody has anything to do.
//!
//! Every line of `requirements/001…` has a test here, or beside the function it is about, that names it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod breaker;
mod dispatch;
mod logs;
mod outage;
mod property;
mod publish;
mod relay;
mod resend;
mod sequential;
mod subscriptions;
mod world;
