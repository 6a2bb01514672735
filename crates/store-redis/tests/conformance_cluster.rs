//! Redis Cluster passes the suite that every store passes, as far as a rule does not need one step over several queues.

mod subject;

use std::process::ExitCode;

use subject::Redis;

fn main() -> ExitCode {
    redrive_store_conformance::main(Redis::at(
        "redis-cluster",
        redrive_test_servers::shared_redis_cluster_url(),
    ))
}
