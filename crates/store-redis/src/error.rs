//! What went wrong at the server, and what that means for the call that was under way.

use redis::{ErrorKind, RedisError, ServerErrorKind};
use redrive_core::invalid::Invalid;
use redrive_store::{QueueError, QueueNotFound, StoreError};

/// Why a step of the store did not work.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It was not begun, and may work if it is done again.
    Again(StoreError),
    /// It was not begun; to do it again at once is of no use.
    Undone(StoreError),
    /// Nobody knows: the answer was lost.
    Unknown(StoreError),
    /// The caller's fault.
    Refused(QueueError),
}

/// What a node of the server said that is not an answer.
#[derive(Debug)]
pub(crate) enum Turned {
    /// It does not know the script.
    NoScript,
    /// Another node has the slot, for good or for this one call.
    Elsewhere {
        /// Where.
        address: String,
        /// Whether only for this call.
        asking: bool,
    },
    /// The connection is of no use any more, and this is what became of the call.
    Lost(Fault),
    /// The call did not work.
    Failed(Fault),
}

impl Turned {
    /// What becomes of a call that was turned away for good.
    pub(crate) fn astray(self) -> Fault {
        match self {
            Self::Failed(fault) | Self::Lost(fault) => fault,
            Self::NoScript => {
                Fault::Again(unavailable("a script was not known to a node that was just told it"))
            }
            Self::Elsewhere { .. } => {
                Fault::Again(unavailable("the nodes of the cluster disagree about who has a slot"))
            }
        }
    }

    /// What an error means. `writes` is whether the call would change something.
    #[expect(clippy::needless_pass_by_value, reason = "an error is handed over where it ends")]
    pub(crate) fn of(error: RedisError, writes: bool) -> Self {
        let told = error.to_string();
        match error.kind() {
            ErrorKind::Server(ServerErrorKind::NoScript) => Self::NoScript,
            ErrorKind::Server(ServerErrorKind::Moved | ServerErrorKind::Ask) => match error.redirect_node() {
                Some((address, _)) => Self::Elsewhere {
                    address: address.to_owned(),
                    asking: error.kind() == ErrorKind::Server(ServerErrorKind::Ask),
                },
                None => Self::Failed(Fault::Again(unavailable(told))),
            },
            // Nothing was done, and in a moment it may be: it reads its files, a slot is on its way, a node was lost.
            ErrorKind::Server(
                ServerErrorKind::BusyLoading
                | ServerErrorKind::TryAgain
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::MasterDown,
            ) => Self::Failed(Fault::Again(unavailable(told))),
            // It is a replica now: another connection may lead to the master.
            ErrorKind::Server(ServerErrorKind::ReadOnly) => Self::Lost(Fault::Again(unavailable(told))),
            ErrorKind::Server(ServerErrorKind::ResponseError) | ErrorKind::Extension
                if error.code() == Some("OOM") =>
            {
                Self::Failed(Fault::Undone(StoreError::StorageFull))
            }
            ErrorKind::Server(ServerErrorKind::ResponseError)
                if told.contains("running script") || told.contains("user_script") =>
            {
                Self::Failed(Fault::Undone(damaged("what a script found", told)))
            }
            ErrorKind::Extension if matches!(error.code(), Some("BUSY" | "UNBLOCKED")) => {
                Self::Failed(Fault::Again(unavailable(told)))
            }
            // A master without its replicas takes nothing: it may be one no more, and not know it yet.
            ErrorKind::Extension if matches!(error.code(), Some("READONLY" | "NOREPLICAS")) => {
                Self::Lost(Fault::Again(unavailable(told)))
            }
            _ if is_of_the_network(&error) => Self::Lost(lost(told, writes)),
            _ => Self::Failed(Fault::Undone(unavailable(told))),
        }
    }
}

pub(crate) fn is_of_the_network(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_timeout()
        || error.is_connection_dropped()
        || error.kind() == ErrorKind::Parse
}

/// No answer came, and none will.
fn lost(told: String, writes: bool) -> Fault {
    if writes {
        Fault::Unknown(StoreError::OutcomeUnknown(told.into()))
    } else {
        Fault::Again(unavailable(told))
    }
}

pub(crate) fn unavailable(told: impl Into<String>) -> StoreError {
    StoreError::Unavailable(told.into().into())
}

/// The server was not reached, and nothing was under way.
#[expect(clippy::needless_pass_by_value, reason = "an error is handed over where it ends")]
pub(crate) fn unreached(error: RedisError) -> StoreError {
    unavailable(error.to_string())
}

/// What the server holds is not what was written to it.
#[expect(clippy::needless_pass_by_value, reason = "an error is handed over where it ends")]
pub(crate) fn damaged(location: impl Into<String>, problem: impl ToString) -> StoreError {
    StoreError::Damaged { location: location.into(), problem: problem.to_string() }
}

impl From<QueueError> for Fault {
    fn from(error: QueueError) -> Self {
        Self::Refused(error)
    }
}

impl From<QueueNotFound> for Fault {
    fn from(error: QueueNotFound) -> Self {
        Self::Refused(error.into())
    }
}

impl From<Invalid> for Fault {
    fn from(error: Invalid) -> Self {
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
