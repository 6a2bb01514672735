//! The broker over the reference store, with a clock that the test moves: what wakes whom, what is told, what goes on.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod access;
mod breaker;
mod enqueue;
mod instances;
mod look;
mod numbers;
mod operations;
mod polls;
mod settle;
mod trace;
mod world;
