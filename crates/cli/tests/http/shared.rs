//! What several processes share, under the real binary: a schema of PostgreSQL, the keys of a Redis, or a cluster, a test's own.

use std::process::Command;
use std::time::Duration;

use crate::server::Server;

/// How long something may take that is sure to happen, on a machine that does a lot else.
const PATIENCE: Duration = Duration::from_mins(3);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(50);

/// A sweeper's lock, as it stands in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) token: String,
    /// Another one each time that the lock is renewed.
    pub(crate) version: i64,
}

/// What there is in all queues of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) messages: i64,
    pub(crate) bodies: i64,
    /// What is kept of messages because somebody has them.
    pub(crate) leases: i64,
}

/// A store for several servers, and a way to look into it past them.
pub(crate) trait SharedStore: Sized {
    /// An empty one.
    async fn new() -> Self;

    /// What a server must be told to use it.
    fn flags(&self) -> Vec<String>;

    /// Who sweeps leases that ran out.
    async fn sweeper(&self) -> Option<Lock>;

    /// What there is, whatever the servers say.
    async fn kept(&self) -> Kept;

    /// Another instance.
    fn instance(&self, flags: &[&str]) -> Server {
        let own = self.flags();
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        Server::with(&[&own[..], flags].concat())
    }
}

/// Runs tests, each a function of a store, on every store that several servers can share.
macro_rules! on_every_store {
    ($($test:ident),+ $(,)?) => {
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test::<crate::database::Database>().await;
            })+
        }

        mod on_redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test::<crate::redis::Keys>().await;
            })+
        }

        mod on_a_cluster {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test::<crate::redis::Nodes>().await;
            })+
        }
    };
}
pub(crate) use on_every_store;

/// What a server says that does not start.
pub(crate) fn fails(flags: &[&str], variables: &[(&str, &str)]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
    command.args(["serve", "--listen", "127.0.0.1:0"]).args(flags).envs(variables.iter().copied());
    let output = command.current_dir(dir.path()).output().unwrap();
    assert!(!output.status.success());
    assert!(output.stdout.is_empty(), "it never was ready");
    String::from_utf8(output.stderr).unwrap()
}

/// Looks until there is what was looked for.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let found = tokio::time::timeout(PATIENCE, async {
        loop {
            looks.tick().await;
            if let Some(found) = look().await {
                return found;
            }
        }
    });
    found.await.unwrap_or_else(|_| panic!("this did not happen: {what}"))
}
