//! Random histories, at least 200,000 steps of them, in which the reference keeps its own promises.
//!
//! `cargo xtask model` runs the same with other arguments.

use std::process::ExitCode;

use redrive_store_conformance::{Memory, model};

fn main() -> ExitCode {
    model::main(&Memory, 200_000)
}
