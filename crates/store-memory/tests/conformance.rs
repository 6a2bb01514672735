//! The reference passes the suite that every store passes.

use std::process::ExitCode;

use redrive_store_conformance::Memory;

fn main() -> ExitCode {
    redrive_store_conformance::main(Memory)
}
