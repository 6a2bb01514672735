//! Real servers for tests.
//!
//! * [`shared_postgres_url`] is what most tests want: one PostgreSQL for all of them, which the test command starts.
//! * [`Postgres`] is a server of a test's own, to be killed, restarted and [promoted](Postgres::promote), with the
//!   [`Settings`] that the test wants.
//! * [`shared_redis_url`], [`shared_redis_cluster_url`], [`Redis`] and [`RedisCluster`] are the same for Redis, with
//!   [`RedisSettings`]; [`RedisSentinels`] is a master whose place another one takes when it is lost.
//! * [`LoopFs`] is a file system of a test's own, whose power can be cut; [`RedisSettings::data_in`] puts a server's data there.
//! * [`proxy`] stands between a client and a server and breaks the connection where a rule says so.
//! * [`install_postgres`] and [`install_redis`] get the Debian packages; the program of this crate calls them and then runs
//!   the test command beside the servers.
//!
//! Nothing stays behind: a server and its data go with the [`Postgres`] or [`Redis`], or with the process that started
//! it, however that ends; `folder.rs` sees to that. Everything blocks: async tests use `spawn_blocking` where it matters.

mod account;
mod binaries;
mod failure;
mod folder;
mod install;
mod log;
mod loopfs;
mod port;
mod postgres;
mod processes;
mod program;
pub mod proxy;
mod random;
mod redis;
mod run;
mod settings;
mod shared;
mod standby;
mod template;

pub use failure::Failure;
pub use install::{install_postgres, install_redis};
pub use loopfs::LoopFs;
pub use postgres::Postgres;
pub use redis::{AppendFsync, Redis, RedisCluster, RedisSentinels, RedisSettings};
pub use settings::Settings;
pub use shared::{
    POSTGRES_VARIABLE, REDIS_CLUSTER_VARIABLE, REDIS_VARIABLE, shared_postgres_url, shared_redis_cluster_url,
    shared_redis_url,
};
