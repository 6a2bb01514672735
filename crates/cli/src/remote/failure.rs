//! What can go wrong, and the one mapping to exit codes.

use redrive_client::{CallError, LeaseError, WorkerError};
use redrive_wire::Problem;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use thiserror::Error;

use crate::exit::Exit;
use crate::span::Span;

/// The server said no.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    pub(crate) problem: Problem,
    /// As it was written.
    pub(crate) json: Box<RawValue>,
}

/// Why a command did not do what it was told.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The server said no.
    #[error("{}", .0.problem.detail)]
    Refused(Box<Refused>),
    /// Nobody answers at the address. Nothing was sent.
    #[error("cannot reach {url}: {why}")]
    Unreachable { url: String, why: String },
    /// The request was on its way when the connection ended: what became of it is not known.
    #[error("{url} did not answer: {why}")]
    Unanswered { url: String, why: String },
    /// Somebody answers, in a way that no Redrive does.
    #[error("{url} {what}: is it a Redrive server?")]
    Stranger { url: String, what: String },
    /// What was typed cannot be meant.
    #[error("{0}")]
    Usage(String),
    /// Somebody was asked, and said no.
    #[error("nothing was changed")]
    Declined,
    /// The thing is not in a state for that.
    #[error("{0}")]
    Conflict(String),
    /// Some of many failed.
    #[error("{failed} of {total} {what} failed")]
    Partial { failed: u64, total: u64, what: &'static str },
    /// What was waited for did not come in time.
    #[error("{0}")]
    TimedOut(String),
    /// Something else came to a bad end.
    #[error("{0}")]
    Failed(String),
    /// The server does not let a worker work.
    #[error(transparent)]
    Worker(WorkerError),
    /// Somebody pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// A file, or the terminal.
    #[error("{0}: {1}")]
    Io(String, #[source] std::io::Error),
    /// Whoever read our output has gone.
    #[error("nobody reads on")]
    ClosedPipe,
}

impl Failure {
    /// How the program ends.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Refused(refused) => exit_of(&refused.problem),
            Self::Unreachable { .. } | Self::Unanswered { .. } => Exit::Unreachable,
            Self::Usage(_) => Exit::Usage,
            Self::Conflict(_) => Exit::Conflict,
            Self::Partial { .. } => Exit::Partial,
            Self::TimedOut(_) => Exit::TimedOut,
            Self::Interrupted => Exit::Interrupted,
            Self::Worker(error) => exit_of_worker(error),
            Self::Stranger { .. } | Self::Declined | Self::Failed(_) | Self::Io(..) | Self::ClosedPipe => {
                Exit::Failed
            }
        }
    }

    /// The word for programs.
    pub(crate) fn code(&self) -> &str {
        match self {
            Self::Refused(refused) => &refused.problem.code,
            Self::Unreachable { .. } => "UNREACHABLE",
            Self::Unanswered { .. } => "UNANSWERED",
            Self::Stranger { .. } => "NO_REDRIVE_SERVER",
            Self::Usage(_) => "USAGE",
            Self::Declined => "DECLINED",
            Self::Conflict(_) => "CONFLICT",
            Self::Partial { .. } => "PARTIAL",
            Self::TimedOut(_) => "TIMED_OUT",
            Self::Failed(_) => "FAILED",
            Self::Interrupted => "INTERRUPTED",
            Self::Worker(error) => code_of_worker(error),
            Self::Io(..) => "IO",
            Self::ClosedPipe => "CLOSED_PIPE",
        }
    }

    /// Whether the same may work later, and what there is to know about that.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Refused(refused) => hint_of(&refused.problem),
            Self::Unreachable { .. } => Some("this may work later".to_owned()),
            Self::Unanswered { .. } => Some("it may have happened: look before you repeat it".to_owned()),
            _ => None,
        }
    }

    /// The same as one JSON object: the server's own where it wrote one.
    pub(crate) fn json(&self) -> String {
        if let Self::Refused(refused) = self {
            return refused.json.get().to_owned();
        }
        let advice = match self {
            Self::Unreachable { .. } | Self::TimedOut(_) => "retry",
            Self::Unanswered { .. } => "ask",
            _ => "give_up",
        };
        let object: Value = json!({"code": self.code(), "detail": self.to_string(), "advice": advice});
        object.to_string()
    }
}

fn exit_of_worker(error: &WorkerError) -> Exit {
    match error {
        WorkerError::Refused(LeaseError::QueueNotFound(_)) => Exit::NotFound,
        WorkerError::Refused(LeaseError::Call(CallError::Unauthenticated(_) | CallError::Forbidden(_))) => {
            Exit::Auth
        }
        WorkerError::Refused(LeaseError::Call(CallError::Invalid(_))) => Exit::Usage,
        WorkerError::Refused(LeaseError::Call(CallError::Unreachable(_))) => Exit::Unreachable,
        WorkerError::Refused(_) | WorkerError::Broken(_) => Exit::Failed,
    }
}

fn code_of_worker(error: &WorkerError) -> &str {
    match error {
        WorkerError::Refused(LeaseError::QueueNotFound(_)) => "QUEUE_NOT_FOUND",
        WorkerError::Refused(LeaseError::Call(error)) => error.code(),
        WorkerError::Broken(_) => "FAILED",
    }
}

/// A refusal's exit code, by its status; a route that is not there is no thing that is not there.
fn exit_of(problem: &Problem) -> Exit {
    match (problem.status, &*problem.code) {
        (404, "NO_SUCH_ROUTE") => Exit::Failed,
        (400 | 413 | 415, _) => Exit::Usage,
        (401 | 403, _) => Exit::Auth,
        (404, _) => Exit::NotFound,
        (409 | 412 | 422, _) => Exit::Conflict,
        _ => Exit::Failed,
    }
}

fn hint_of(problem: &Problem) -> Option<String> {
    match (&*problem.advice, problem.retry_after_ms) {
        ("retry", Some(ms)) => Some(format!("this may work later (retry after {})", Span::from_millis(ms))),
        ("retry", None) => Some("this may work later".to_owned()),
        ("ask", _) => Some("it may have happened: look before you repeat it".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, code: &str, advice: &str) -> Failure {
        let problem = Problem {
            r#type: String::new(),
            title: String::new(),
            status,
            code: code.to_owned(),
            detail: "no".to_owned(),
            advice: advice.to_owned(),
            errors: Vec::new(),
            retry_after_ms: (advice == "retry").then_some(1_000),
        };
        let json = serde_json::value::to_raw_value(&problem).unwrap();
        Failure::Refused(Box::new(Refused { problem, json }))
    }

    #[test]
    fn a_status_is_an_exit_code() {
        for (status, code, exit) in [
            (400, "INVALID_ARGUMENT", Exit::Usage),
            (413, "BODY_TOO_LARGE", Exit::Usage),
            (401, "KEY_MISSING", Exit::Auth),
            (403, "FORBIDDEN", Exit::Auth),
            (404, "QUEUE_NOT_FOUND", Exit::NotFound),
            (404, "NO_SUCH_ROUTE", Exit::Failed),
            (409, "LEASE_LOST", Exit::Conflict),
            (412, "VERSION_MISMATCH", Exit::Conflict),
            (422, "IDEMPOTENCY_KEY_REUSED", Exit::Conflict),
            (429, "QUEUE_FULL", Exit::Failed),
            (503, "UNAVAILABLE", Exit::Failed),
            (507, "STORAGE_FULL", Exit::Failed),
        ] {
            assert_eq!(refused(status, code, "give_up").exit(), exit, "{status} {code}");
        }
    }

    #[test]
    fn a_failure_says_whether_a_retry_helps() {
        let hint = |failure: Failure| failure.hint().unwrap_or_default();
        assert_eq!(hint(refused(503, "UNAVAILABLE", "retry")), "this may work later (retry after 1s)");
        assert_eq!(
            hint(refused(503, "OUTCOME_UNKNOWN", "ask")),
            "it may have happened: look before you repeat it"
        );
        assert_eq!(hint(refused(404, "QUEUE_NOT_FOUND", "give_up")), "");
        let away = Failure::Unreachable { url: "http://a/".to_owned(), why: "refused".to_owned() };
        assert_eq!(
            away.json(),
            r#"{"advice":"retry","code":"UNREACHABLE","detail":"cannot reach http://a/: refused"}"#
        );
    }
}
