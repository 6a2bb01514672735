//! What the program's exit codes mean. The only list of them.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// It failed, for none of the reasons below.
    Failed = 1,
    /// What was typed cannot be meant; clap ends with the same code.
    Usage = 2,
    /// There is no such thing.
    NotFound = 3,
    /// It is not in a state for that: it is there already, was changed meanwhile, or the lease is lost.
    Conflict = 4,
    /// Without a key, or with one that may not do that.
    Auth = 5,
    /// Nobody answers.
    Unreachable = 6,
    /// Some of many failed.
    Partial = 7,
    /// What was waited for did not come in time.
    TimedOut = 8,
    /// Somebody pressed Ctrl-C.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
