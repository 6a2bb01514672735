//! One server for all tests: a process has one test, and a server takes longer to start than most tests to run.

use std::env;
use std::sync::OnceLock;

use crate::{Postgres, Settings};

/// The variable by which the test command tells where its server is.
pub const POSTGRES_VARIABLE: &str = "REDRIVE_TEST_POSTGRES";

/// Where tests find a PostgreSQL that they share: use a schema or a database of your own.
///
/// It is the one of the test command, or one that this process starts and keeps until it ends. There is no test without
/// a server, so this panics where it cannot be started.
pub fn shared_postgres_url() -> String {
    static OWN: OnceLock<Postgres> = OnceLock::new();
    match env::var(POSTGRES_VARIABLE) {
        Ok(url) if !url.is_empty() => url,
        _ => OWN.get_or_init(own).url(),
    }
}

fn own() -> Postgres {
    Postgres::start(Settings::shared()).unwrap_or_else(|failure| panic!("{failure}"))
}
