//! Where the program of Redis is.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use crate::binaries::major;
use crate::{Failure, program};

/// The oldest version that is tested: the one of Debian 12.
const OLDEST: u32 = 7;

/// The first one in the path, or where Debian puts it, that is new enough.
pub(crate) fn find() -> Result<PathBuf, Failure> {
    let mut folders: Vec<PathBuf> = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect();
    folders.push("/usr/bin".into());
    let mut programs = folders.iter().map(|folder| folder.join("redis-server"));
    programs.find(|program| program.is_file() && is_new_enough(program)).ok_or_else(|| {
        Failure::NotInstalled {
            server: "Redis",
            remedy: format!("`apt-get install redis-server`, of version {OLDEST} or later"),
        }
    })
}

/// It says `Redis server v=7.0.15 sha=…`.
fn is_new_enough(program: &PathBuf) -> bool {
    let mut command = Command::new(program);
    command.arg("--version");
    program::run(command).is_ok_and(|version| major(&version) >= OLDEST)
}
