//! The server that both arms use, and what the figures were measured on.

use std::time::Duration;

use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use redrive_store_redis::{Options, Patience, RedisStore};
use redrive_test_servers::{AppendFsync, Redis, RedisSettings};
use tokio::sync::OnceCell;

use crate::host::{self, spent, ticks};

/// The store that the bench is about.
pub(crate) type BenchStore = RedisStore;

/// A Redis that was started for the bench, with an append-only file.
pub(crate) struct Server {
    redis: Redis,
    /// What all who call it by hand share.
    connection: OnceCell<MultiplexedConnection>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let settings = RedisSettings::default().appendfsync(AppendFsync::EverySecond);
        let redis = Redis::start(settings).unwrap_or_else(|failure| panic!("{failure}"));
        let server = Self { redis, connection: OnceCell::new() };
        // Its file is written anew whenever it has doubled, by a child that takes a whole core: whichever arm has its turn then would pay
        // for what the other has written.
        server.ask(&["CONFIG", "SET", "auto-aof-rewrite-percentage", "0"]);
        server
    }

    /// A store under a prefix of its own, which is empty. All callers share its connection, however many they are.
    pub(crate) async fn open_store(&self, prefix: &str, _callers: usize) -> BenchStore {
        self.clear(prefix);
        let options = Options { prefix: prefix.to_owned(), ..Options::new(self.redis.url()) };
        RedisStore::open(options, [42; 32]).await.expect("it opens")
    }

    pub(crate) async fn connection(&self) -> MultiplexedConnection {
        let connect = async || {
            let client = redis::Client::open(self.redis.url()).expect("a good address");
            // As patient as the store: the library's own half a second is over soon on a machine that does something else.
            let config = AsyncConnectionConfig::new().set_response_timeout(Some(Patience::default().answer));
            client.get_multiplexed_async_connection_with_config(&config).await.expect("it connects")
        };
        self.connection.get_or_init(connect).await.clone()
    }

    /// Nothing is done behind the back of a server that has no more to do.
    #[expect(clippy::unused_async, reason = "shared with bench-postgres, whose server has something to do")]
    pub(crate) async fn settle(&self) {}

    /// The answer to a command, as text.
    pub(crate) fn ask(&self, words: &[&str]) -> String {
        self.redis.command(words).unwrap_or_else(|failure| panic!("{failure}"))
    }

    /// What the server has allocated for what it holds, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.told("memory", "used_memory")
    }

    fn told(&self, section: &str, name: &str) -> u64 {
        let info = self.ask(&["INFO", section]);
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|value| value.trim().parse().ok()).expect("a server tells it")
    }

    /// Takes away whatever is there. Groups that share a server leave nothing to each other.
    fn clear(&self, prefix: &str) {
        let keys = self.ask(&["KEYS", &format!("{prefix}:*")]);
        for some in keys.split_whitespace().collect::<Vec<_>>().chunks(1_000) {
            self.ask(&[&["DEL"][..], some].concat());
        }
    }

    /// The CPU that the server has used so far, and its children that rewrote its file.
    pub(crate) fn cpu(&self) -> Duration {
        spent(ticks(&self.told("server", "process_id").to_string(), 13..17))
    }

    /// One line for each thing that the figures depend on.
    pub(crate) fn print_header(&self) {
        host::print(self.redis.folder());
        let info = self.ask(&["INFO", "server"]);
        let version = info.lines().find_map(|line| line.strip_prefix("redis_version:")).unwrap_or("unknown");
        println!("redis      {}, appendonly yes, appendfsync everysec", version.trim());
        println!("measured   at the store's API (RedisStore), with neither broker nor HTTP in front of it");
    }
}

/// Gives back what a store holds of its server, which is one connection: it goes with it.
pub(crate) fn close(_: &BenchStore) {}
