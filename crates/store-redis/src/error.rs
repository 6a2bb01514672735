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
            // By `SCRIPT KILL`, which ends only what has written nothing yet.
            _ if told.contains("Script killed by user") => Self::Failed(Fault::Again(unavailable(told))),
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
            // A key is not what it was made as, or the group is gone: to try again leads to the same, and may do half of it again.
            ErrorKind::Extension if told.contains("user_script") && error.code() != Some("MISCONF") => {
                Self::Failed(Fault::Undone(damaged("what a script found", told)))
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

#[cfg(test)]
mod tests {
    use std::io;

    use redis::{Value, parse_redis_value};

    use super::*;

    /// What an answer means that a node gave, as it comes from the wire.
    fn answered(line: &str, writes: bool) -> Turned {
        let answer = parse_redis_value(format!("-{line}\r\n").as_bytes());
        Turned::of(answer.and_then(Value::extract_error).unwrap_err(), writes)
    }

    /// What becomes of the connection, whether the call is done again, and what the caller is told if it is not.
    fn told(turned: Turned) -> [&'static str; 3] {
        let (connection, fault) = match turned {
            Turned::NoScript => return ["", "with its text", ""],
            Turned::Elsewhere { asking: false, .. } => return ["", "there from now on", ""],
            Turned::Elsewhere { asking: true, .. } => return ["", "there this once", ""],
            Turned::Lost(fault) => ("given up", fault),
            Turned::Failed(fault) => ("kept", fault),
        };
        match fault {
            Fault::Again(error) => [connection, "soon", error.code()],
            Fault::Undone(error) => [connection, "no", error.code()],
            Fault::Unknown(error) => [connection, "unknown", error.code()],
            Fault::Refused(error) => [connection, "refused", error.code()],
        }
    }

    const BUSY: [&str; 3] = ["kept", "soon", "UNAVAILABLE"];
    const GIVEN_UP: [&str; 3] = ["given up", "soon", "UNAVAILABLE"];
    const USELESS: [&str; 3] = ["kept", "no", "UNAVAILABLE"];

    #[test]
    fn what_a_node_refuses_was_not_done_and_each_refusal_says_whether_to_come_again() {
        let [full, broken] = [["kept", "no", "STORAGE_FULL"], ["kept", "no", "STORE_DAMAGED"]];
        for (line, expected) in [
            ("NOSCRIPT No matching script. Please use EVAL.", ["", "with its text", ""]),
            ("MOVED 3999 127.0.0.1:6381", ["", "there from now on", ""]),
            ("ASK 3999 127.0.0.1:6381", ["", "there this once", ""]),
            // A node that does not say where.
            ("MOVED 3999", BUSY),
            ("LOADING Redis is loading the dataset in memory", BUSY),
            ("TRYAGAIN Multiple keys request during rehashing of slot", BUSY),
            ("CLUSTERDOWN The cluster is down", BUSY),
            ("CLUSTERDOWN Hash slot not served", BUSY),
            ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", BUSY),
            ("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", BUSY),
            (
                "ERR user_script:1: Script killed by user with SCRIPT KILL... script: ab, on @user_script:1.",
                BUSY,
            ),
            ("UNBLOCKED force unblock from blocking operation, instance state changed", BUSY),
            ("READONLY You can't write against a read only replica.", GIVEN_UP),
            ("NOREPLICAS Not enough good replicas to write.", GIVEN_UP),
            ("OOM command not allowed when used memory > 'maxmemory'.", full),
            ("OOM command not allowed when used memory > 'maxmemory'. script: ab, on @user_script:1.", full),
            (
                "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'",
                full,
            ),
            ("ERR user_script:1: attempt to index a nil value script: ab, on @user_script:1.", broken),
            ("WRONGTYPE Operation against a key of another kind script: ab, on @user_script:1.", broken),
            ("NOGROUP No such consumer group script: ab, on @user_script:1.", broken),
            ("ERR Error running script (call to f_ab): @user_script:1: not an integer", broken),
            ("MISCONF Redis is configured to save RDB snapshots, but it cannot persist on disk.", USELESS),
            ("NOAUTH Authentication required.", USELESS),
            ("NOPERM this user has no permissions to run the 'evalsha' command", USELESS),
            ("CROSSSLOT Keys in request don't hash to the same slot", USELESS),
            ("ERR unknown command", USELESS),
            ("WHATEVER a later version may say", USELESS),
        ] {
            for writes in [false, true] {
                assert_eq!(told(answered(line, writes)), expected, "{line}, which writes: {writes}");
            }
        }
    }

    #[test]
    fn a_node_that_sends_a_call_elsewhere_says_where() {
        let Turned::Elsewhere { address, .. } = answered("ASK 3999 10.0.0.2:6381", true) else {
            panic!("it is sent there");
        };
        assert_eq!(address, "10.0.0.2:6381");
    }

    #[test]
    fn an_answer_that_did_not_come_leaves_unknown_what_a_write_has_done_and_a_read_is_done_again() {
        let lost = |kind: io::ErrorKind| RedisError::from(io::Error::from(kind));
        let garbled = || parse_redis_value(b"no answer at all\r\n").unwrap_err();
        for error in [
            lost(io::ErrorKind::TimedOut),
            lost(io::ErrorKind::BrokenPipe),
            lost(io::ErrorKind::ConnectionReset),
            lost(io::ErrorKind::UnexpectedEof),
            garbled(),
        ] {
            let unknown = ["given up", "unknown", "OUTCOME_UNKNOWN"];
            assert_eq!(told(Turned::of(error.clone(), true)), unknown, "{error}");
            assert_eq!(told(Turned::of(error.clone(), false)), GIVEN_UP, "{error}");
        }
    }

    #[test]
    fn a_call_that_is_sent_round_in_circles_was_not_done() {
        for line in ["NOSCRIPT No matching script.", "MOVED 1 a:1", "ASK 1 a:1", "TRYAGAIN later"] {
            let fault = answered(line, true).astray();
            assert!(matches!(fault, Fault::Again(StoreError::Unavailable(_))), "{line}: {fault:?}");
        }
    }
}
