//! Packages of Debian that a step needs and may install.

use std::process::Command;

use crate::command::{self, Failure};

/// Installs a package.
pub(crate) fn install(package: &str) -> Result<(), Failure> {
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        command::run(command)
    };
    apt(&["update"]).and_then(|()| apt(&["install", "--yes", package]))
}
