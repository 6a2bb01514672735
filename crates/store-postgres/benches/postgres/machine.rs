//! The server that both arms use, and what the figures were measured on.

use std::fs;
use std::time::Duration;

use redrive_store_postgres::{Options, PostgresStore};
use redrive_test_servers::{Postgres, Settings};
use tokio_postgres::NoTls;

use crate::host::{self, spent, ticks};

/// The store that the bench is about.
pub(crate) type BenchStore = PostgresStore;

/// What the store tells the planner. The bare loop gets the same.
pub(crate) const PLANS: &str = "-c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off \
    -c enable_mergejoin=off -c jit=off -c plan_cache_mode=force_generic_plan";

/// A PostgreSQL that was started for the bench, with its usual settings.
#[derive(Debug)]
pub(crate) struct Server(Postgres);

impl Server {
    pub(crate) fn start() -> Self {
        let settings = Settings::default().max_connections(200);
        Self(Postgres::start(settings).unwrap_or_else(|failure| panic!("{failure}")))
    }

    pub(crate) fn url(&self) -> String {
        self.0.url()
    }

    /// A store in a schema of its own, which is empty.
    pub(crate) async fn open_store(&self, schema: &str, connections: usize) -> BenchStore {
        self.execute(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).await;
        let options = Options { schema: schema.to_owned(), connections, ..Options::new(self.url()) };
        PostgresStore::open(options, [42; 32]).await.expect("it opens")
    }

    /// After a load: what the planner knows is true, and nothing is left to clean up.
    pub(crate) async fn settle(&self) {
        self.execute("VACUUM ANALYZE").await;
    }

    /// The answer of a query, as text.
    pub(crate) fn ask(&self, sql: &str) -> String {
        self.0.sql(sql).unwrap_or_else(|failure| panic!("{failure}"))
    }

    pub(crate) async fn execute(&self, sql: &str) {
        let (client, connection) = tokio_postgres::connect(&self.url(), NoTls).await.expect("it connects");
        let running = tokio::spawn(connection);
        client.batch_execute(sql).await.expect("it is done");
        drop(client);
        running.await.expect("it ends").expect("it ends well");
    }

    /// The CPU that all processes of the server have used so far, those that ended included.
    pub(crate) fn cpu(&self) -> Duration {
        let pid_file = self.0.folder().join("data/postmaster.pid");
        let text = fs::read_to_string(pid_file).unwrap_or_default();
        let Some(postmaster) = text.lines().next() else { return Duration::ZERO };
        let children = fs::read_to_string(format!("/proc/{postmaster}/task/{postmaster}/children"));
        let children = children.unwrap_or_default();
        // Of the postmaster also what its children that ended have used.
        let ticks: u64 = children.split_whitespace().map(|child| ticks(child, 13..15)).sum();
        spent(ticks + self::ticks(postmaster, 13..17))
    }

    /// One line for each thing that the figures depend on.
    pub(crate) fn print_header(&self) {
        host::print(self.0.folder());
        let settings = ["server_version", "fsync", "synchronous_commit", "shared_buffers"];
        let settings = settings.map(|name| format!("{name} {}", self.ask(&format!("SHOW {name}"))));
        println!("postgres   {}", settings.join(", "));
        println!(
            "measured   at the store's API (PostgresStore), with neither broker nor HTTP in front of it"
        );
    }
}

/// Gives the connections of a store back.
pub(crate) fn close(store: &BenchStore) {
    store.close();
}
