//! `redrive store backup`: a copy of a directory that no server has open.
//!
//! A hot backup is made by the process that has the store: only that knows up to where each segment is written and what
//! cleaning gives up meanwhile. From outside, a copy of files that change is a copy of nothing.

use std::path::PathBuf;

use clap::Args;
use redrive_store_embedded::{restore, verify};

use super::verify::{document, fields};
use super::{directory, failed};
use crate::output::{Cell, Output, card};
use crate::remote::Failure;

#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    /// The directory: what `--data` of the server says.
    dir: PathBuf,
    /// A directory that is empty, or not there yet.
    to: PathBuf,
}

pub(super) fn run(arguments: &BackupArguments, output: &Output) -> Result<(), Failure> {
    let running = "a backup of a running store can be made only from inside its process (`EmbeddedStore::backup`), \
                   or from a snapshot of the file system; or stop it first";
    let source = directory::taken(&arguments.dir, running)?;
    let target = directory::opened(&arguments.to)?;
    let options = directory::options();
    // To copy what was checked into an empty directory is what a restore does, too.
    restore(&source, target.as_ref(), &options).map_err(|error| failed(&error))?;
    let report = verify(&target, &options).map_err(|error| failed(&error))?;
    output.document(&document(&report), || {
        let mut fields = fields(&report);
        fields.insert(0, ("backup", Cell::text(arguments.to.to_string_lossy())));
        card(&fields, output.coloured)
    })
}
