//! The commands that ask a server: the real binary against a real server, with good input and with bad.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod breakers;
mod connection;
mod dead;
mod enqueue;
mod events;
mod keys;
mod leases;
mod messages;
mod operations;
mod output;
mod publish;
mod queues;
mod receiver;
mod run;
#[path = "../server/mod.rs"]
#[expect(dead_code, reason = "the tests of the API use the rest of it")]
mod server;
mod subscriptions;
mod terminal;
mod topics;
