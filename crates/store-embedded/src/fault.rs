//! How failures of the disk become errors of the store.

use std::io;

use redrive_store::StoreError;

use crate::disk::Disk;
use crate::format::Malformed;

/// The disk failed in the middle of something: whether it happened is not known, and the store stops.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what}: {problem}")]
pub(crate) struct Fault {
    what: &'static str,
    problem: String,
}

/// What is wrong, in words.
pub(crate) struct Problem(String);

impl From<&str> for Problem {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<Malformed> for Problem {
    fn from(problem: Malformed) -> Self {
        Self(problem.to_string())
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Self(fault.to_string())
    }
}

impl Fault {
    pub(crate) fn new(what: &'static str, problem: impl Into<Problem>) -> Self {
        Self { what, problem: problem.into().0 }
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
pub(crate) fn damaged(disk: &dyn Disk, file: &str, offset: u64, problem: impl Into<Problem>) -> StoreError {
    StoreError::Damaged {
        location: format!("{} at offset {offset}", disk.place(file)),
        problem: problem.into().0,
    }
}

/// Whether there is no space left.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
