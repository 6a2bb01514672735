//! Random histories against the reference, with restarts.
//!
//! `cargo xtask model --store postgres` runs the same with other arguments.

mod subject;

use std::process::ExitCode;

use redrive_store_conformance::model;
use subject::Postgres;

fn main() -> ExitCode {
    model::main(&Postgres::new(), 1_500)
}
