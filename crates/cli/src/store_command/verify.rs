//! `redrive store verify`: whether everything in a directory is as it was written.

use std::path::Path;

use redrive_store_embedded::VerifyReport;
use serde_json::{Value, json};

use super::{directory, failed};
use crate::output::{Cell, Output, card};
use crate::remote::Failure;

pub(super) fn run(dir: &Path, output: &Output) -> Result<(), Failure> {
    let disk = directory::taken(dir, "stop it first; it checks what it reads by itself")?;
    let report =
        redrive_store_embedded::verify(&disk, &directory::options()).map_err(|error| failed(&error))?;
    output.document(&document(&report), || {
        let mut fields = fields(&report);
        fields.insert(0, ("state", Cell::state("ok")));
        card(&fields, output.coloured)
    })
}

/// What was found, for programs.
pub(super) fn document(report: &VerifyReport) -> Value {
    json!({
        "segments": report.segments,
        "total_bytes": report.total_bytes,
        "live_bytes": report.live_bytes,
        "queues": report.queues,
        "messages": report.messages,
        "entries": report.entries,
    })
}

/// The same for people.
pub(super) fn fields(report: &VerifyReport) -> Vec<(&'static str, Cell)> {
    vec![
        ("queues", Cell::number(report.queues)),
        ("messages", Cell::number(report.messages)),
        ("registry entries", Cell::number(report.entries)),
        ("segments", Cell::number(report.segments)),
        ("bytes", Cell::number(report.total_bytes)),
        ("bytes needed", Cell::number(report.live_bytes)),
    ]
}
