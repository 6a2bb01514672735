//! A temporary folder that goes with its owner, and whatever runs in it.

use std::env;
use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::account::Account;
use crate::{Failure, random};

/// Reads the number of the server whenever it changes. When nobody can write it any more, it ends the last one and
/// removes the folder. Who was killed may still be about to make a file in it.
const WATCHDOG: &str = r#"
while read -r line; do pid=$line; done
tries=0
if [ -n "$pid" ]; then end "$1"; fi
until rm -rf -- "$1" || [ $tries -ge 200 ]; do sleep 0.05; tries=$((tries + 1)); done
"#;
/// The server removes its file of that name as the last thing it does; who is still there after ten seconds will not go
/// by itself.
const END_POSTGRES: &str = r#"
end() {
    kill -QUIT "$pid" || return
    while [ -e "$1/data/postmaster.pid" ] && [ $tries -lt 200 ]; do sleep 0.05; tries=$((tries + 1)); done
    if [ -e "$1/data/postmaster.pid" ]; then kill -KILL "$pid"; fi
    tries=0
}
"#;
/// Nobody will read what it could still write. Who writes its files for it is in its group.
const END_REDIS: &str = r#"
end() { kill -s KILL -- "-$pid"; }
"#;

/// Whose folder it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tenant {
    Postgres,
    Redis,
}

impl Tenant {
    fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Redis => "redis",
        }
    }

    /// How the watchdog ends it.
    fn end(self) -> &'static str {
        match self {
            Self::Postgres => END_POSTGRES,
            Self::Redis => END_REDIS,
        }
    }
}

/// A folder that only the server's user and root can enter.
///
/// A process of its own removes it: a pipe to us is how it learns that we ended, also by SIGKILL. A signal at the
/// death of the parent would not do: to the kernel, the parent is the thread that started the child, and the threads of
/// tests end long before their process. It is in a process group of its own, because test runners kill whole groups.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    watchdog: Child,
    /// Open as long as we are there.
    pipe: Option<ChildStdin>,
}

impl Folder {
    pub(crate) fn new(tenant: Tenant, account: Account) -> Result<Self, Failure> {
        let refused = || Failure::refused("a temporary folder");
        let name = format!("redrive-{}-{}", tenant.name(), random::word().map_err(refused())?);
        let path = env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&path).map_err(refused())?;
        account.own(&path).map_err(refused())?;
        let (watchdog, pipe) = watchdog(tenant, &path).map_err(refused())?;
        Ok(Self { path, watchdog, pipe: Some(pipe) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The server's data. The watchdog knows this name.
    pub(crate) fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    /// Says which process is to end with us, or that there is none any more.
    pub(crate) fn watch(&mut self, process: Option<u32>) -> Result<(), Failure> {
        let line = process.map(|number| number.to_string()).unwrap_or_default();
        let pipe = self.pipe.as_mut().ok_or(Failure::Stopped)?;
        writeln!(pipe, "{line}").map_err(Failure::refused("the watchdog"))
    }
}

impl Drop for Folder {
    /// Waits until the folder is gone.
    fn drop(&mut self) {
        drop(self.pipe.take());
        drop(self.watchdog.wait());
    }
}

fn watchdog(tenant: Tenant, folder: &Path) -> io::Result<(Child, ChildStdin)> {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("{}{WATCHDOG}", tenant.end()), "watchdog"])
        .arg(folder)
        .current_dir("/")
        .process_group(0);
    // It must not hold what a test runner waits for.
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut watchdog = command.spawn()?;
    let pipe = watchdog.stdin.take().ok_or_else(|| io::Error::other("it has no input"))?;
    Ok((watchdog, pipe))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_goes_with_what_is_in_it_and_what_runs_in_it() {
        for tenant in [Tenant::Postgres, Tenant::Redis] {
            let mut folder = Folder::new(tenant, Account::find("postgres").unwrap()).unwrap();
            let path = folder.path().to_owned();
            fs::create_dir(folder.data()).unwrap();
            fs::write(folder.data().join("file"), "text").unwrap();
            let mut server = Command::new("cat").stdin(Stdio::piped()).process_group(0).spawn().unwrap();
            folder.watch(Some(server.id())).unwrap();
            drop(folder);
            assert!(!path.exists());
            assert!(!server.wait().unwrap().success());
        }
    }
}
