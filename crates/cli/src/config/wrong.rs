//! A value that the server cannot be started with.

use std::fmt;

/// A value that the server cannot be started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// The key whose value it is.
    pub(crate) key: &'static str,
    /// What is wrong with it.
    pub(crate) problem: String,
}

impl Wrong {
    /// The value of `key` is wrong, for that reason.
    pub(crate) fn value(key: &'static str, problem: impl fmt::Display) -> anyhow::Error {
        Self { key, problem: problem.to_string() }.into()
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.problem)
    }
}

impl std::error::Error for Wrong {}
