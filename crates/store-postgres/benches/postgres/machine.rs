//! The server that both arms use, and what the figures were measured on.

use std::fs;
use std::path::Path;
use std::time::Duration;

use redrive_test_servers::{Postgres, Settings};
use tokio_postgres::NoTls;

/// What the store tells the planner. The bare loop gets the same.
pub(crate) const PLANS: &str = "-c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off \
    -c enable_mergejoin=off -c jit=off -c plan_cache_mode=force_generic_plan";

/// Ticks of a second in `/proc`, the same on every Linux that Rust runs on.
const TICKS: u64 = 100;

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
        Duration::from_millis((ticks + self::ticks(postmaster, 13..17)) * 1_000 / TICKS)
    }

    /// One line for each thing that the figures depend on.
    pub(crate) fn print_header(&self) {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        println!("cpu        {processors} x {}", cpu());
        println!("kernel     {}", first_line("/proc/sys/kernel/osrelease"));
        println!("filesystem {} at {}", filesystem(self.0.folder()), self.0.folder().display());
        let settings = ["server_version", "fsync", "synchronous_commit", "shared_buffers"];
        let settings = settings.map(|name| format!("{name} {}", self.ask(&format!("SHOW {name}"))));
        println!("postgres   {}", settings.join(", "));
        println!(
            "measured   at the store's API (PostgresStore), with neither broker nor HTTP in front of it"
        );
    }
}

fn ticks(pid: &str, fields: std::ops::Range<usize>) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name, in brackets, may hold spaces; what is behind it begins with the third field.
    let Some((_, rest)) = stat.rsplit_once(") ") else { return 0 };
    let rest: Vec<&str> = rest.split(' ').collect();
    let wanted = rest.get(fields.start - 2..fields.end - 2).unwrap_or_default();
    wanted.iter().filter_map(|field| field.parse::<u64>().ok()).sum()
}

fn cpu() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name"));
    model.and_then(|line| line.split_once(':')).map_or("unknown", |(_, name)| name.trim()).to_owned()
}

fn first_line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().lines().next().unwrap_or("unknown").to_owned()
}

/// The type of the file system that is mounted nearest above `dir`.
fn filesystem(dir: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mounted = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?, words.next()?))
    });
    mounted
        .filter(|(at, _, _)| dir.starts_with(at))
        .max_by_key(|(at, _, _)| at.len())
        .map_or_else(|| "unknown".to_owned(), |(_, kind, _)| kind.to_owned())
}
