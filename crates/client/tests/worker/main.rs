//! The worker against a real server over TCP: what it does with every outcome, and with everything that goes wrong. What
//! became of a message is asked of the broker.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod calls;
mod connection;
mod leases;
mod outcomes;
mod proxy;
mod shutdown;
mod world;
