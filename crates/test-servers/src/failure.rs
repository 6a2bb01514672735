//! Why a server is not there.

use std::error::Error;
use std::fmt;
use std::io;
use std::process::ExitStatus;

/// Why a server could not be found, started, or asked. It is for people: a test can only fail with it.
#[derive(Debug)]
pub enum Failure {
    /// A server is not on this machine; `remedy` is what to do about it.
    NotInstalled {
        /// Which one.
        server: &'static str,
        /// A command, or what the attempt to install it said.
        remedy: String,
    },
    /// The operating system refused something.
    Refused {
        /// What was tried.
        what: String,
        /// What it said.
        cause: io::Error,
    },
    /// A program ran and said no.
    Exited {
        /// Its name.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// What it printed.
        said: String,
    },
    /// The server ended, or was silent for too long, where it should have said something.
    Silent {
        /// What it should have said.
        awaited: String,
        /// The last lines of its log.
        log: String,
    },
    /// A Redis understood what it was asked, and refused.
    Answered {
        /// The first words of what it was asked.
        command: String,
        /// What it said.
        error: String,
    },
    /// The server was asked for something while it was stopped.
    Stopped,
}

impl Failure {
    /// Says what was tried when the operating system refused it.
    pub(crate) fn refused(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        |cause| Self::Refused { what: what.into(), cause }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInstalled { server, remedy } => write!(f, "{server} is not installed: {remedy}"),
            Self::Refused { what, cause } => write!(f, "{what}: {cause}"),
            Self::Exited { program, status, said } => write!(f, "{program} ended with {status}:\n{said}"),
            Self::Silent { awaited, log } => write!(f, "the server did not say `{awaited}`, but:\n{log}"),
            Self::Answered { command, error } => write!(f, "`{command}` was answered: {error}"),
            Self::Stopped => write!(f, "the server is stopped"),
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused { cause, .. } => Some(cause),
            _ => None,
        }
    }
}
