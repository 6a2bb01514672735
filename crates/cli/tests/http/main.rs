//! The real binary through its APIs: every endpoint, what must work and what must be refused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod access;
mod audit;
mod bench;
mod bus;
mod canary;
mod dashboard;
mod database;
mod grpc;
mod hostile;
mod instances;
mod leases;
mod ledger;
mod lifecycle;
mod matrix;
mod messages;
mod numbers;
mod open_reading;
mod operations;
mod port;
mod postgres;
mod queues;
mod redis;
#[path = "../server/mod.rs"]
mod server;
mod shared;
mod starvation;
mod streams;
mod tls;
mod together;
mod tokens;
#[cfg(feature = "otel")]
mod traces;
mod work;
