//! What went wrong in the database, and what that means for the call that was under way.

use deadpool_postgres::PoolError;
use redrive_store::{QueueError, StoreError};
use tokio_postgres::error::SqlState;

/// Why a step of the store did not work.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It was undone as a whole and may work if it is done again: somebody was in the way.
    Again(tokio_postgres::Error),
    /// The same, seen by us and not by the database.
    Raced,
    /// It was undone as a whole, or never begun.
    Undone(StoreError),
    /// Nobody knows: the answer to a commit was lost.
    Unknown(StoreError),
    /// The caller's fault.
    Refused(QueueError),
}

impl Fault {
    /// What an error means. `committing` is whether it came in answer to something that ends a transaction.
    pub(crate) fn of(error: tokio_postgres::Error, committing: bool) -> Self {
        let Some(code) = error.code() else {
            // The connection, not the database: whatever was sent may have arrived.
            return if committing {
                Self::Unknown(StoreError::OutcomeUnknown(told(&error).into()))
            } else {
                Self::Undone(StoreError::Unavailable(told(&error).into()))
            };
        };
        match *code {
            SqlState::T_R_SERIALIZATION_FAILURE
            | SqlState::T_R_DEADLOCK_DETECTED
            | SqlState::UNIQUE_VIOLATION
            | SqlState::LOCK_NOT_AVAILABLE => Self::Again(error),
            SqlState::DISK_FULL => Self::Undone(StoreError::StorageFull),
            SqlState::UNDEFINED_TABLE
            | SqlState::UNDEFINED_COLUMN
            | SqlState::UNDEFINED_FUNCTION
            | SqlState::INVALID_SCHEMA_NAME => Self::Undone(StoreError::Damaged {
                location: "the schema".to_owned(),
                problem: error.to_string(),
            }),
            SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => Self::Undone(StoreError::Damaged {
                location: "the database".to_owned(),
                problem: error.to_string(),
            }),
            // The server ends: a commit that it was at may or may not have been written.
            SqlState::ADMIN_SHUTDOWN | SqlState::CRASH_SHUTDOWN if committing => {
                Self::Unknown(StoreError::OutcomeUnknown(told(&error).into()))
            }
            _ => Self::Undone(StoreError::Unavailable(told(&error).into())),
        }
    }
}

impl From<PoolError> for Fault {
    fn from(error: PoolError) -> Self {
        Self::Undone(StoreError::Unavailable(error.into()))
    }
}

impl From<QueueError> for Fault {
    fn from(error: QueueError) -> Self {
        Self::Refused(error)
    }
}

impl From<redrive_store::QueueNotFound> for Fault {
    fn from(error: redrive_store::QueueNotFound) -> Self {
        Self::Refused(error.into())
    }
}

impl From<redrive_core::invalid::Invalid> for Fault {
    fn from(error: redrive_core::invalid::Invalid) -> Self {
        Self::Refused(error.into())
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Undone(error)
    }
}

impl From<Fault> for QueueError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Again(error) => Self::Store(unreached(error)),
            Fault::Raced => Self::Store(StoreError::Unavailable("others were in the way too often".into())),
            Fault::Undone(error) | Fault::Unknown(error) => Self::Store(error),
            Fault::Refused(error) => error,
        }
    }
}

/// For calls that name no queue of their own: nothing in them is refused as a whole.
pub(crate) fn store_error(fault: Fault) -> StoreError {
    match QueueError::from(fault) {
        QueueError::Store(error) => error,
        other => StoreError::Unavailable(other.into()),
    }
}

/// The database was not reached, or said no, and nothing was under way.
#[expect(clippy::needless_pass_by_value, reason = "an error is handed over where it ends")]
pub(crate) fn unreached(error: tokio_postgres::Error) -> StoreError {
    StoreError::Unavailable(told(&error).into())
}

/// An error that says why, which those of the library do not by themselves. Of what the database says it has the message, and
/// not the details, in which there may be data.
fn told(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(said), _) => format!("{} ({})", said.message(), said.code().code()),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}

/// What the database holds is not what was written to it.
#[expect(clippy::needless_pass_by_value, reason = "an error is handed over where it ends")]
pub(crate) fn damaged(location: impl Into<String>, problem: impl ToString) -> StoreError {
    StoreError::Damaged { location: location.into(), problem: problem.to_string() }
}
