//! PostgreSQL passes the suite that every store passes.

mod subject;

use std::process::ExitCode;

use subject::Postgres;

fn main() -> ExitCode {
    redrive_store_conformance::main(Postgres::new())
}
