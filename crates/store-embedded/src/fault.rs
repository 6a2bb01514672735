//! How failures of the disk become errors of the store.

use std::io;

use redrive_store::StoreError;

use crate::disk::Disk;

/// The disk failed in the middle of something: whether it happened is not known, and the store stops.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what}: {problem}")]
pub(crate) struct Fault {
    what: &'static str,
    problem: String,
}

impl Fault {
    pub(crate) fn new(what: &'static str, problem: impl ToString) -> Self {
        Self { what, problem: problem.to_string() }
    }

    /// For calls that were under way.
    pub(crate) fn unknown(&self) -> StoreError {
        StoreError::OutcomeUnknown(Box::new(self.clone()))
    }

    /// For calls that come later.
    pub(crate) fn stopped(&self) -> StoreError {
        StoreError::Stopped(Box::new(self.clone()))
    }
}

/// Turns an error of the disk into a fault that says what was being done.
pub(crate) fn during(what: &'static str) -> impl Fn(io::Error) -> Fault {
    move |error| Fault::new(what, error)
}

/// The store cannot be opened because the disk fails.
pub(crate) fn unavailable(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Unavailable(Box::new(error))
}

/// Damage, with the file and the offset.
pub(crate) fn damaged(disk: &dyn Disk, file: &str, offset: u64, problem: impl ToString) -> StoreError {
    StoreError::Damaged {
        location: format!("{} at offset {offset}", disk.place(file)),
        problem: problem.to_string(),
    }
}

/// Whether there is no space left.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
