//! Redis: one server, or a cluster of them.

mod binary;
mod cluster;
mod nodes;
pub(crate) mod resp;
mod server;
mod settings;
mod slots;

pub(crate) use binary::find;
pub use cluster::RedisCluster;
pub use server::Redis;
pub use settings::{AppendFsync, RedisSettings};
