//! `redrive-test-servers run -- COMMAND…`: runs a command beside the servers that its tests share.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};

use redrive_test_servers::{
    Failure, POSTGRES_VARIABLE, Postgres, REDIS_CLUSTER_VARIABLE, REDIS_VARIABLE, Redis, RedisCluster,
    RedisSettings, Settings, install_postgres, install_redis,
};

const USAGE: &str = "usage: redrive-test-servers run -- COMMAND [ARGUMENT…]";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let [run, dashes, program, arguments @ ..] = arguments.as_slice() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if run != "run" || dashes != "--" {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    let mut command = Command::new(program);
    command.args(arguments);
    match beside_servers(command) {
        Ok(status) => ExitCode::from(code(status)),
        Err(failure) => {
            eprintln!("redrive-test-servers: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// The servers end with this function; if the process ends before, they end with it.
fn beside_servers(mut command: Command) -> Result<ExitStatus, Failure> {
    let postgres = unless_there(POSTGRES_VARIABLE, postgres)?;
    if let Some(server) = &postgres {
        eprintln!("PostgreSQL for the tests is on port {}", server.port());
        command.env(POSTGRES_VARIABLE, server.url());
    }
    let redis = unless_there(REDIS_VARIABLE, redis)?;
    if let Some(server) = &redis {
        eprintln!("Redis for the tests is on port {}", server.port());
        command.env(REDIS_VARIABLE, server.url());
    }
    let cluster = unless_there(REDIS_CLUSTER_VARIABLE, cluster)?;
    if let Some(cluster) = &cluster {
        eprintln!("Redis Cluster for the tests is {}", cluster.url());
        command.env(REDIS_CLUSTER_VARIABLE, cluster.url());
    }
    let shown = command.get_program().to_string_lossy().into_owned();
    command.status().map_err(|cause| Failure::Refused { what: shown, cause })
}

/// A server that somebody else has started is used.
fn unless_there<T>(variable: &str, start: fn() -> Result<T, Failure>) -> Result<Option<T>, Failure> {
    let theirs = env::var_os(variable).is_some_and(|url| !url.is_empty());
    (!theirs).then(start).transpose()
}

fn postgres() -> Result<Postgres, Failure> {
    install_postgres()?;
    Postgres::start(Settings::shared())
}

fn redis() -> Result<Redis, Failure> {
    install_redis()?;
    Redis::start(RedisSettings::shared())
}

fn cluster() -> Result<RedisCluster, Failure> {
    install_redis()?;
    RedisCluster::start(&RedisSettings::shared())
}

/// The command's own, or what a shell makes of a signal.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
