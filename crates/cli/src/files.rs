//! How many files and connections the process may have open.

use rustix::process::{Resource, getrlimit, setrlimit};

/// A process may have as many files and connections open as the system allows it at all: what it gets by default is
/// meant for programs that use `select`.
pub(crate) fn allow_many() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the number of open files stays as it is");
    }
}
