//! What went wrong in the database, and what that means for the call that was under way.

use deadpool::managed::{PoolError, TimeoutType};
use redrive_store::{QueueError, StoreError};
use tokio_postgres::error::SqlState;

/// Why a step of the store did not work.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It was undone as a whole, or never begun, and may work if it is done again: somebody was in the way, or the
    /// connection was lost.
    Again(StoreError),
    /// The same, seen by us and not by the database.
    Raced,
    /// It was undone as a whole, or never begun; to do it again at once is of no use.
    Undone(StoreError),
    /// Nobody knows: the answer to a commit was lost.
    Unknown(StoreError),
    /// The caller's fault.
    Refused(QueueError),
}

impl Fault {
    /// What an error means. `committing` is whether it came in answer to something that ends a transaction.
    #[expect(clippy::needless_pass_by_value, reason = "an error is handed over where it ends")]
    pub(crate) fn of(error: tokio_postgres::Error, committing: bool) -> Self {
        match error.code() {
            Some(code) => Self::of_code(code, &error, committing),
            // Not the network, so most likely something that cannot be sent: the same again would fail again.
            None if !committing && !is_of_the_network(&error) => {
                Self::Undone(StoreError::Unavailable(told(&error).into()))
            }
            None => Self::lost(told(&error), committing),
        }
    }

    fn of_code(code: &SqlState, error: &tokio_postgres::Error, committing: bool) -> Self {
        match *code {
            // Somebody was in the way, or the connection was idle for too long in the middle of a transaction, or leads
            // to a server that is no primary any more, or that has no room at this moment.
            SqlState::T_R_SERIALIZATION_FAILURE
            | SqlState::T_R_DEADLOCK_DETECTED
            | SqlState::UNIQUE_VIOLATION
            | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
            | SqlState::IDLE_SESSION_TIMEOUT
            | SqlState::READ_ONLY_SQL_TRANSACTION
            | SqlState::OUT_OF_MEMORY
            | SqlState::TOO_MANY_CONNECTIONS
            | SqlState::CANNOT_CONNECT_NOW => Self::Again(StoreError::Unavailable(told(error).into())),
            SqlState::DISK_FULL => Self::Undone(StoreError::StorageFull),
            SqlState::UNDEFINED_TABLE
            | SqlState::UNDEFINED_COLUMN
            | SqlState::UNDEFINED_FUNCTION
            | SqlState::INVALID_SCHEMA_NAME => {
                Self::Undone(StoreError::Damaged { location: "the schema".to_owned(), problem: told(error) })
            }
            SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => Self::Undone(StoreError::Damaged {
                location: "the database".to_owned(),
                problem: told(error),
            }),
            // The server ends, or whoever stands before it has lost it: a commit may or may not have been written.
            SqlState::ADMIN_SHUTDOWN | SqlState::CRASH_SHUTDOWN => Self::lost(told(error), committing),
            _ if code.code().starts_with("08") => Self::lost(told(error), committing),
            // A statement or a lock that took all the time there is (57014, 55P03) among them: the caller has waited.
            _ => Self::Undone(StoreError::Unavailable(told(error).into())),
        }
    }

    /// No answer came, and none will.
    pub(crate) fn lost(error: impl Into<Box<dyn std::error::Error + Send + Sync>>, committing: bool) -> Self {
        if committing {
            Self::Unknown(StoreError::OutcomeUnknown(error.into()))
        } else {
            Self::Again(StoreError::Unavailable(error.into()))
        }
    }

    /// The same after something was committed: that it was undone is not true any more.
    pub(crate) fn after_commit(self) -> Self {
        let unknown = |error: StoreError| match error {
            StoreError::Unavailable(cause) => StoreError::OutcomeUnknown(cause),
            other => other,
        };
        match self {
            Self::Again(error) | Self::Undone(error) => Self::Unknown(unknown(error)),
            Self::Raced => Self::Unknown(StoreError::OutcomeUnknown("others were in the way".into())),
            other => other,
        }
    }
}

/// Whether the connection is of no use after this error.
pub(crate) fn loses_connection(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        Some(code) => {
            matches!(
                *code,
                SqlState::READ_ONLY_SQL_TRANSACTION | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
            ) || ["08", "57P"].iter().any(|class| code.code().starts_with(class))
        }
        None => true,
    }
}

fn is_of_the_network(error: &tokio_postgres::Error) -> bool {
    if error.is_closed() {
        return true;
    }
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if error.is::<std::io::Error>() {
            return true;
        }
        cause = error.source();
    }
    false
}

impl From<PoolError<Fault>> for Fault {
    fn from(error: PoolError<Fault>) -> Self {
        let unavailable = |why: &str| StoreError::Unavailable(why.into());
        match error {
            PoolError::Backend(fault) => fault,
            PoolError::Timeout(TimeoutType::Wait) => {
                Self::Undone(unavailable("all connections to the database are in use"))
            }
            PoolError::Timeout(_) => Self::Again(unavailable("the database did not answer in time")),
            PoolError::Closed => Self::Undone(unavailable("the store is closed")),
            PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
                Self::Undone(unavailable("the connections to the database are not set up"))
            }
        }
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
            Fault::Raced => Self::Store(StoreError::Unavailable("others were in the way too often".into())),
            Fault::Again(error) | Fault::Undone(error) | Fault::Unknown(error) => Self::Store(error),
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
