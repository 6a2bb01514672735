//! The embedded store passes the suite that every store passes.

mod subject;

use std::process::ExitCode;

use subject::Embedded;

fn main() -> ExitCode {
    redrive_store_conformance::main(Embedded)
}
