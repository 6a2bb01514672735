//! PostgreSQL and Redis from Debian, without the servers that Debian would start.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

use crate::binaries::Binaries;
use crate::{Failure, redis};

/// The version that is tested, and whatever another Debian has.
const POSTGRES: [&str; 2] = ["postgresql-15", "postgresql"];
/// What the package reads before it makes and starts a server of its own; the folder is there for others to write to.
const FOLDER: &str = "/etc/postgresql-common/createcluster.d";
const NO_SERVER: &str = "create_main_cluster = false\n";
/// The package with the server; its programs come with it.
const REDIS: &str = "redis-server";
/// Who is asked by every package before it starts a server of its own.
const POLICY: &str = "/usr/sbin/policy-rc.d";
const NO_SERVICE: &str = "#!/bin/sh\nexit 101\n";

/// Installs PostgreSQL where it is missing, by Debian's packages. It says on the standard error what it does.
pub fn install_postgres() -> Result<(), Failure> {
    if Binaries::find().is_ok() {
        return Ok(());
    }
    let conf = Path::new(FOLDER).join("redrive.conf");
    fs::create_dir_all(FOLDER)
        .and_then(|()| fs::write(&conf, NO_SERVER))
        .map_err(Failure::refused(FOLDER))?;
    let [preferred, other] = POSTGRES;
    let installed = install("PostgreSQL", preferred).or_else(|_| install("PostgreSQL", other));
    // What the owner of the machine installs later is not ours to change.
    fs::remove_file(&conf).map_err(Failure::refused(FOLDER))?;
    installed?;
    Binaries::find().map(drop)
}

/// Installs Redis where it is missing, in the same way.
pub fn install_redis() -> Result<(), Failure> {
    if redis::find().is_ok() {
        return Ok(());
    }
    let ours = forbid_services().map_err(Failure::refused(POLICY))?;
    let installed = install("Redis", REDIS);
    if ours {
        fs::remove_file(POLICY).map_err(Failure::refused(POLICY))?;
    }
    installed?;
    redis::find().map(drop)
}

/// Whether it was for us to say so: a policy that is there is the owner's.
fn forbid_services() -> io::Result<bool> {
    match OpenOptions::new().write(true).create_new(true).mode(0o755).open(POLICY) {
        Ok(mut file) => file.write_all(NO_SERVICE.as_bytes()).map(|()| true),
        Err(cause) if cause.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(cause) => Err(cause),
    }
}

fn install(server: &'static str, package: &str) -> Result<(), Failure> {
    apt_get(server, &["update"])?;
    apt_get(server, &["install", "-y", "--no-install-recommends", package])
}

/// Its output is ours: it takes a while, and says best what is wrong.
fn apt_get(server: &'static str, arguments: &[&str]) -> Result<(), Failure> {
    let shown = format!("apt-get {}", arguments.join(" "));
    let not_installed = |remedy| Failure::NotInstalled { server, remedy };
    eprintln!("$ {shown}");
    let status = Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive").status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(not_installed(format!("`{shown}` ended with {status}"))),
        Err(cause) => Err(not_installed(format!("`{shown}` could not be run: {cause}"))),
    }
}
