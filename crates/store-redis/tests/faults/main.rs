//! What becomes of the store when its server, a node of its cluster, or the way to them fails. Real servers, really killed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod arrival;
#[path = "../subject/audit.rs"]
mod audit;
mod cluster;
mod epoch;
mod full;
mod halfway;
mod levels;
mod patience;
mod power;
mod relay;
mod routing;
mod sentinel;
mod server;
mod signal;
mod stale;
mod sweeps;
mod torn;
#[path = "../world/mod.rs"]
mod world;
