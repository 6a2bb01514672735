//! Redis: one server, a cluster of them, or a few with sentinels that watch over them.

mod binary;
mod cluster;
mod nodes;
pub(crate) mod resp;
mod sentinel;
mod server;
mod settings;
mod slots;

pub(crate) use binary::find;
pub use cluster::RedisCluster;
pub use sentinel::RedisSentinels;
pub use server::Redis;
pub use settings::{AppendFsync, RedisSettings};
