//! A directory that is there, and that nobody else has.

use std::path::Path;
use std::sync::Arc;

use redrive_store_embedded::Options;
use redrive_store_embedded::disk::{Disk, RealDisk};

use crate::remote::Failure;

/// What a store is looked at with: what its queues say counts, and what they do not say is not shown.
pub(super) fn options() -> Options {
    Options::default()
}

/// A directory with a store in it, which is made by nobody who only looks.
pub(super) fn existing(dir: &Path) -> Result<Arc<dyn Disk>, Failure> {
    let there = std::fs::metadata(dir).map_err(|error| Failure::Io(dir.display().to_string(), error))?;
    if !there.is_dir() {
        return Err(Failure::Usage(format!("{} is no directory", dir.display())));
    }
    let disk = opened(dir)?;
    let names = disk.list().map_err(|error| Failure::Io(dir.display().to_string(), error))?;
    if names.iter().any(|name| is_segment(name)) {
        return Ok(disk);
    }
    Err(Failure::Usage(format!(
        "{} has no store in it: there is no file that ends in .segment",
        dir.display()
    )))
}

/// A directory with a store in it, taken for as long as the answer lives.
pub(super) fn taken(dir: &Path, what: &str) -> Result<Arc<dyn Disk>, Failure> {
    let disk = existing(dir)?;
    take(disk.as_ref(), dir, what)?;
    Ok(disk)
}

/// Takes a directory, or says who has it.
pub(super) fn take(disk: &dyn Disk, dir: &Path, what: &str) -> Result<(), Failure> {
    match disk.lock() {
        Ok(true) => Ok(()),
        Ok(false) => {
            Err(Failure::Conflict(format!("{} is in use by a running server: {what}", dir.display())))
        }
        Err(error) => Err(Failure::Io(format!("locking {}", dir.display()), error)),
    }
}

/// The directory, made where it is not there.
pub(super) fn opened(dir: &Path) -> Result<Arc<dyn Disk>, Failure> {
    let disk = RealDisk::new(dir).map_err(|error| Failure::Io(dir.display().to_string(), error))?;
    Ok(Arc::new(disk))
}

/// Whether a file is part of a store.
pub(super) fn is_segment(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(number, kind)| {
        matches!(kind, "segment" | "log") && number.bytes().all(|digit| digit.is_ascii_digit())
    })
}
