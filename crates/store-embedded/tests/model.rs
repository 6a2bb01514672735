//! Random histories, at least 200,000 steps of them, against the reference, with restarts.
//!
//! `cargo xtask model --store embedded` runs the same with other arguments.

mod subject;

use std::process::ExitCode;

use redrive_store_conformance::model;
use subject::Embedded;

fn main() -> ExitCode {
    model::main(&Embedded, 200_000)
}
