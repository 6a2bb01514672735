//! Servers for all tests: a process has one test, and a server takes longer to start than most tests to run.

use std::env;
use std::fmt::Display;
use std::sync::OnceLock;

use crate::{Postgres, Redis, RedisCluster, RedisSettings, Settings};

/// The variable by which the test command tells where its PostgreSQL is.
pub const POSTGRES_VARIABLE: &str = "REDRIVE_TEST_POSTGRES";
/// The variable by which it tells where its Redis is.
pub const REDIS_VARIABLE: &str = "REDRIVE_TEST_REDIS";
/// The variable by which it tells where its Redis Cluster is.
pub const REDIS_CLUSTER_VARIABLE: &str = "REDRIVE_TEST_REDIS_CLUSTER";

/// Where tests find a PostgreSQL that they share: use a schema or a database of your own.
///
/// It is the one of the test command, or one that this process starts and keeps until it ends. There is no test without
/// a server, so this panics where it cannot be started.
pub fn shared_postgres_url() -> String {
    static OWN: OnceLock<Postgres> = OnceLock::new();
    told(POSTGRES_VARIABLE)
        .unwrap_or_else(|| OWN.get_or_init(|| started(Postgres::start(Settings::shared()))).url())
}

/// The same for a Redis, which keeps nothing: use keys with a prefix of your own, and leave those of others alone.
pub fn shared_redis_url() -> String {
    static OWN: OnceLock<Redis> = OnceLock::new();
    told(REDIS_VARIABLE)
        .unwrap_or_else(|| OWN.get_or_init(|| started(Redis::start(RedisSettings::shared()))).url())
}

/// The same for a Redis Cluster of three masters, by the URL of all of them (`redis+cluster://…`).
pub fn shared_redis_cluster_url() -> String {
    static OWN: OnceLock<RedisCluster> = OnceLock::new();
    told(REDIS_CLUSTER_VARIABLE)
        .unwrap_or_else(|| OWN.get_or_init(|| started(RedisCluster::start(&RedisSettings::shared()))).url())
}

fn told(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|url| !url.is_empty())
}

fn started<T, E: Display>(server: Result<T, E>) -> T {
    server.unwrap_or_else(|failure| panic!("{failure}"))
}
