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
/// removes the folder. The server removes its file of that name as the last thing it does; who is still there after ten
/// seconds will not go by itself.
const WATCHDOG: &str = r#"
while read -r line; do pid=$line; done
if [ -n "$pid" ] && kill -QUIT "$pid"; then
    tries=0
    while [ -e "$1/data/postmaster.pid" ] && [ $tries -lt 200 ]; do sleep 0.05; tries=$((tries + 1)); done
    if [ -e "$1/data/postmaster.pid" ]; then kill -KILL "$pid"; fi
fi
rm -rf -- "$1"
"#;

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
    pub(crate) fn new(account: Account) -> Result<Self, Failure> {
        let refused = || Failure::refused("a temporary folder");
        let path = env::temp_dir().join(format!("redrive-postgres-{}", random::word().map_err(refused())?));
        DirBuilder::new().mode(0o700).create(&path).map_err(refused())?;
        account.own(&path).map_err(refused())?;
        let (watchdog, pipe) = watchdog(&path).map_err(refused())?;
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

fn watchdog(folder: &Path) -> io::Result<(Child, ChildStdin)> {
    let mut command = Command::new("sh");
    command.args(["-c", WATCHDOG, "watchdog"]).arg(folder).current_dir("/").process_group(0);
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
        let mut folder = Folder::new(Account::find().unwrap()).unwrap();
        let path = folder.path().to_owned();
        fs::create_dir(folder.data()).unwrap();
        fs::write(folder.data().join("file"), "text").unwrap();
        let mut server = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        folder.watch(Some(server.id())).unwrap();
        drop(folder);
        assert!(!path.exists());
        assert!(!server.wait().unwrap().success());
    }
}
