//! Random histories against the reference, with restarts, on a cluster.
//!
//! `cargo xtask model --store redis-cluster` runs the same with other arguments.

mod subject;

use std::process::ExitCode;

use redrive_store_conformance::model;
use subject::Redis;

fn main() -> ExitCode {
    model::main(&Redis::at("redis-cluster", redrive_test_servers::shared_redis_cluster_url()), 1_500)
}
