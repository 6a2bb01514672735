//! Where the programs of PostgreSQL are.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;

/// Where Debian keeps them, in a folder for each version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// The version that is tested where it is there: the one of Debian 12.
const PREFERRED: u32 = 15;

/// A folder with `postgres`, `initdb` and what else belongs to one version.
#[derive(Clone, Debug)]
pub(crate) struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// The preferred version of Debian's, else the newest of them, else what is in the path.
    pub(crate) fn find() -> Result<Self, Failure> {
        let mut folders = debian();
        folders.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        folders.into_iter().map(|folder| Self { folder }).find(Self::are_complete).ok_or_else(|| {
            Failure::NotInstalled {
                server: "PostgreSQL",
                remedy: format!("`apt-get install postgresql-{PREFERRED}`"),
            }
        })
    }

    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.folder.join(program)
    }

    /// What the server says of its version, such as `postgres (PostgreSQL) 15.9 (Debian 15.9-0+deb12u1)`.
    pub(crate) fn version(&self) -> Result<String, Failure> {
        let program = self.path("postgres");
        let output = Command::new(&program)
            .arg("--version")
            .output()
            .map_err(Failure::refused(program.display().to_string()))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// A client alone has a folder in the path, too.
    fn are_complete(&self) -> bool {
        ["postgres", "initdb", "psql", "pg_basebackup"].iter().all(|program| self.path(program).is_file())
    }
}

/// The first number in what a server says of its version.
pub(crate) fn major(version: &str) -> u32 {
    let digits = version.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

fn debian() -> Vec<PathBuf> {
    let entries = fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let mut versions: Vec<u32> = entries.filter_map(|entry| number(&entry.file_name())).collect();
    versions.sort_by_key(|&version| (version != PREFERRED, u32::MAX - version));
    versions.iter().map(|version| Path::new(DEBIAN).join(version.to_string()).join("bin")).collect()
}

fn number(name: &OsStr) -> Option<u32> {
    name.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_the_first_number() {
        assert_eq!(major("postgres (PostgreSQL) 15.9 (Debian 15.9-0+deb12u1)"), 15);
        assert_eq!(major("postgres (PostgreSQL) 18beta1"), 18);
        assert_eq!(major("nothing"), 0);
    }
}
