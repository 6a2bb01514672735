//! The same queue on Redis and Redis Cluster.
//!
//! What is ready lies in lists, one for each lane, fairness key, priority and class; what is in flight in one stream with a consumer group
//! for each queue, so that `XPENDING` is the table of leases; deadlines and delays in sorted sets, everything else in hashes. Every
//! verb is a script in `scripts/`, which the server runs alone and as a whole; all keys of a queue are in one slot (`keys.rs`).
//! What a failure leads to is judged here and sent along, guarded by the lease or by the line of words that was seen (`words.rs`).
//!
//! * `link.rs`: the way to the server, or to the node of a cluster that has a key; `greet.rs`: whether it is the one of before;
//!   `sentinel.rs`: which one it is, where others decide that.
//! * a file for each verb; `settle.rs`, `sweep.rs` and `bulk.rs` are what those have in common that are alike; `list.rs`, `count.rs`;
//!   `relay.rs` where one step becomes several because a cluster is between two queues.
//! * `queue.rs`, `registry.rs`, `signal.rs`: what is not about messages. `durability.rs`: what the server promises;
//!   `clock.rs`: what time it is there; `inspect.rs`: all of that, looked at without changing anything.

mod bulk;
mod clock;
mod count;
mod discard;
mod durability;
mod enqueue;
mod error;
mod expire;
mod extend;
mod greet;
mod inspect;
mod keys;
mod lapse;
mod lease;
mod link;
mod list;
mod lock;
mod r#move;
mod nack;
mod options;
mod queue;
mod redrive;
mod registry;
mod relay;
mod release;
mod reply;
mod reschedule;
mod script;
mod sentinel;
mod settle;
mod signal;
mod store;
mod sweep;
mod words;

pub use clock::StoreClock;
pub use inspect::{ClusterState, Format, Inspection, Server, inspect};
pub use options::{Durability, Options, Patience, WrongOption};
pub use store::RedisStore;
