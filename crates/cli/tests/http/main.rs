//! The real binary through its APIs: every endpoint, what must work and what must be refused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bench;
mod grpc;
mod hostile;
mod leases;
mod lifecycle;
mod messages;
mod operations;
mod port;
mod queues;
mod server;
mod starvation;
mod streams;
mod tls;
#[cfg(feature = "otel")]
mod traces;
