//! Random histories against the reference, with restarts.
//!
//! `cargo xtask model --store redis` runs the same with other arguments.

mod subject;

use std::process::ExitCode;

use redrive_store_conformance::model;
use subject::Redis;

fn main() -> ExitCode {
    model::main(&Redis::at("redis", redrive_test_servers::shared_redis_url()), 1_500)
}
