//! PostgreSQL from Debian, without the server that Debian would start.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Failure;
use crate::binaries::Binaries;

/// The version that is tested, and whatever another Debian has.
const PACKAGES: [&str; 2] = ["postgresql-15", "postgresql"];
/// What the package reads before it makes and starts a server of its own; the folder is there for others to write to.
const FOLDER: &str = "/etc/postgresql-common/createcluster.d";
const NO_SERVER: &str = "create_main_cluster = false\n";

/// Installs PostgreSQL where it is missing, by Debian's packages. It says on the standard error what it does.
pub fn install_postgres() -> Result<(), Failure> {
    if Binaries::find().is_ok() {
        return Ok(());
    }
    let conf = Path::new(FOLDER).join("redrive.conf");
    fs::create_dir_all(FOLDER)
        .and_then(|()| fs::write(&conf, NO_SERVER))
        .map_err(Failure::refused(FOLDER))?;
    let installed = install();
    // What the owner of the machine installs later is not ours to change.
    fs::remove_file(&conf).map_err(Failure::refused(FOLDER))?;
    installed?;
    Binaries::find().map(drop)
}

fn install() -> Result<(), Failure> {
    apt_get(&["update"])?;
    let [preferred, other] = PACKAGES.map(|package| ["install", "-y", "--no-install-recommends", package]);
    apt_get(&preferred).or_else(|_| apt_get(&other))
}

/// Its output is ours: it takes a while, and says best what is wrong.
fn apt_get(arguments: &[&str]) -> Result<(), Failure> {
    let shown = format!("apt-get {}", arguments.join(" "));
    eprintln!("$ {shown}");
    let status = Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive").status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(not_installed(format!("`{shown}` ended with {status}"))),
        Err(cause) => Err(not_installed(format!("`{shown}` could not be run: {cause}"))),
    }
}

fn not_installed(remedy: String) -> Failure {
    Failure::NotInstalled { remedy }
}
