//! npm, as far as the page needs it: what it is built with and tested by, in the versions of `web/package-lock.json`.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::command::{self, Failure};
use crate::server;

/// Where the sources of the page are, from the root.
const WEB: &str = "web";
/// The oldest Node.js that the page is built with.
const NODE_MAJOR_MIN: u32 = 20;

/// `npm` with these arguments, among the sources of the page. Nothing is downloaded but packages.
pub(crate) fn npm(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command.args(arguments).env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1").current_dir(root.join(WEB));
    command
}

/// Runs a script of the page.
pub(crate) fn run_script(root: &Path, name: &str) -> Result<(), Failure> {
    command::run(npm(root, &["run", "--silent", name]))
}

/// Sees to it that the packages are there, in the versions that are written down. Those that were installed for the same
/// versions are used again.
pub(crate) fn packages(root: &Path) -> Result<(), Failure> {
    needs_node()?;
    let home = server::binaries()?.join("ui");
    let (lock, stamp) = (root.join(WEB).join("package-lock.json"), home.join("package-lock.json"));
    let wanted = fs::read(&lock).map_err(|cause| unreadable(&lock, cause))?;
    let is_there = root.join(WEB).join("node_modules").join(".package-lock.json").exists();
    if is_there && fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    drop(fs::remove_file(&stamp));
    // Not `ci`, which refuses a lock without the packages of other platforms: a registry may not have them all.
    command::run(npm(root, &["install", "--no-save", "--no-audit", "--no-fund"]))?;
    let written = fs::create_dir_all(&home).and_then(|()| fs::write(&stamp, &wanted));
    written.map_err(|cause| unreadable(&stamp, cause))
}

/// Sees to it that there is a Node.js which is not too old, and npm.
fn needs_node() -> Result<(), Failure> {
    let remedy = "apt-get install nodejs npm (Debian 13 or later)";
    let version = answer(Command::new("node").arg("--version"));
    if version.and_then(|version| major(&version)).is_none_or(|major| major < NODE_MAJOR_MIN) {
        return Err(Failure::NotInstalled { tool: "Node.js 20 or later", remedy });
    }
    match answer(Command::new("npm").arg("--version")) {
        Some(_) => Ok(()),
        None => Err(Failure::NotInstalled { tool: "npm", remedy }),
    }
}

/// What a program prints, where it is there and ends well.
fn answer(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The first number of a version such as `v20.19.2`.
fn major(version: &str) -> Option<u32> {
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}

fn unreadable(path: &Path, cause: io::Error) -> Failure {
    Failure::Unreadable { path: path.display().to_string(), cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_of_a_version_counts() {
        assert_eq!((major("v20.19.2"), major("v9.0"), major("v22")), (Some(20), Some(9), Some(22)));
        assert_eq!((major("20.19"), major("v"), major("")), (None, None, None));
    }

    #[test]
    fn nothing_is_downloaded_but_packages() {
        let shown = command::shown(&npm(Path::new("."), &["install"]));
        assert_eq!(shown, "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=\"1\" npm install");
    }
}
