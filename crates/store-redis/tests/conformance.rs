//! Redis passes the suite that every store passes.

mod subject;

use std::process::ExitCode;

use subject::Redis;

fn main() -> ExitCode {
    redrive_store_conformance::main(Redis::at("redis", redrive_test_servers::shared_redis_url()))
}
