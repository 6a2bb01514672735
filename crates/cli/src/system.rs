//! What the process asks of the system it runs on.

use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::thread::disable_transparent_huge_pages;

/// As many files and connections as the system allows at all: what a process gets by default is meant for programs that
/// use `select`. Answers how many those are.
pub(crate) fn allow_many_files() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the number of open files stays as it is");
    }
    // What has no limit is told as none.
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Memory in small pages: a server with many connections touches a little of everything, and a large page is cleared and
/// held whole for that little.
pub(crate) fn use_small_pages() {
    if let Err(error) = disable_transparent_huge_pages(true) {
        tracing::debug!(%error, "memory comes in large pages");
    }
}
