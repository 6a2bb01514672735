//! The data of a new server: made by `initdb` once, and copied from then on.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::binaries::{Binaries, major};
use crate::folder::Folder;
use crate::{Failure, program, random};

/// The administrator, whom clients are.
pub(crate) const USER: &str = "postgres";
/// The database that clients use.
pub(crate) const DATABASE: &str = "redrive";
/// What the server is told beyond what `initdb` wrote; it is written before every start.
pub(crate) const SETTINGS: &str = "redrive.conf";
/// The password, beside the data.
const PASSWORD: &str = "password";
/// Goes up with every change to what is in a template.
const LAYOUT: u32 = 1;

/// Puts data into the folder and answers the administrator's password.
pub(crate) fn lay_out(binaries: &Binaries, account: Account, folder: &Folder) -> Result<String, Failure> {
    let version = binaries.version()?;
    let template = template(&version);
    let known = template.as_ref().filter(|template| template.is_dir());
    if let Some(known) = known {
        copy_contents(known, folder.path()).map_err(Failure::refused(known.display().to_string()))?;
        account.own(folder.path()).map_err(Failure::refused("a temporary folder"))?;
    } else {
        make(binaries, account, folder, &version)?;
        // Without a template the next start takes longer, and that is all.
        template.map(|template| publish(folder.path(), &template).ok());
    }
    fs::read_to_string(folder.path().join(PASSWORD)).map_err(Failure::refused(PASSWORD))
}

fn make(binaries: &Binaries, account: Account, folder: &Folder, version: &str) -> Result<(), Failure> {
    let (path, data) = (folder.path(), folder.data());
    // Not even other users of this machine may run programs as an administrator of a database of ours.
    let password = path.join(PASSWORD);
    let secret = random::word().map_err(Failure::refused(PASSWORD))?;
    fs::write(&password, secret).and_then(|()| account.own(&password)).map_err(Failure::refused(PASSWORD))?;

    let mut initdb = account.command(&binaries.path("initdb"), path);
    initdb.arg("--pgdata").arg(&data).arg("--pwfile").arg(&password);
    initdb.args(["--username", USER, "--auth", "scram-sha-256", "--no-sync"]);
    initdb.args(["--encoding", "UTF8", "--locale", "C"]);
    // Most databases sort as people do, and not by bytes: what relies on bytes has to fail here.
    if major(version) >= 15 {
        initdb.args(["--locale-provider", "icu", "--icu-locale", "en-US"]);
    }
    program::run(initdb)?;

    let mut single = account.command(Path::new("sh"), path);
    single.args(["-c", r#"echo "CREATE DATABASE $3" | "$1" --single -F -D "$2" template1"#, "sh"]);
    single.arg(binaries.path("postgres")).arg(&data).arg(DATABASE);
    program::run(single)?;

    let conf = data.join("postgresql.conf");
    let included = format!("{}\ninclude '{SETTINGS}'\n", read(&conf)?);
    fs::write(&conf, included).map_err(Failure::refused("postgresql.conf"))
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(Failure::refused(path.display().to_string()))
}

/// Where the template of a version is: in the target folder that we were built into, which `cargo clean` removes.
fn template(version: &str) -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    let target = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file())?;
    let named = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let version: String = version.chars().map(named).collect();
    Some(target.join("test-servers").join(format!("{version}.{LAYOUT}")))
}

/// Others look for the template at the same time: it is either whole or not there.
fn publish(folder: &Path, template: &Path) -> io::Result<()> {
    let unfinished = template.with_extension(random::word()?);
    DirBuilder::new().recursive(true).mode(0o700).create(&unfinished)?;
    let published = copy_contents(folder, &unfinished).and_then(|()| fs::rename(&unfinished, template));
    if published.is_err() {
        fs::remove_dir_all(&unfinished)?;
    }
    published
}

fn copy_contents(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            // The server insists on the mode.
            DirBuilder::new().mode(0o700).create(&target)?;
            copy_contents(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
