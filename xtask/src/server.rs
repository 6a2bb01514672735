//! A server of ours for the length of a step, on a free port and with a directory that goes again; and the binary that the
//! tests use.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::command::{self, Failure, cargo};

/// What the program prints when it is ready, before the scheme and the address.
const READY: &str = "redrive is ready on ";

/// A server that runs. It is killed and reaped when this is dropped, however the step ends.
pub(crate) struct Server {
    child: Child,
    address: String,
    data: PathBuf,
}

impl Server {
    /// Starts `redrive serve` by this command, with its queues in `data`, and waits until it is ready.
    pub(crate) fn start(mut command: Command, data: PathBuf) -> Result<Self, Failure> {
        let shown = command::shown(&command);
        eprintln!("$ {shown}");
        // There is none, or it is what a run that was cut off left.
        drop(fs::remove_dir_all(&data));
        command.env("REDRIVE_LISTEN", "127.0.0.1:0").env("REDRIVE_DATA", &data).stdout(Stdio::piped());
        let not_started = |cause| Failure::NotStarted { command: shown.clone(), cause };
        let child = command.spawn().map_err(not_started)?;
        let mut server = Self { child, address: String::new(), data };
        server.address = server.ready().map_err(not_started)?;
        Ok(server)
    }

    /// Where it listens, as `host:port`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    fn ready(&mut self) -> io::Result<String> {
        let stdout = self.child.stdout.take().ok_or_else(|| io::Error::other("it has no output"))?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let origin = line.trim().strip_prefix(READY).and_then(|origin| origin.split_once("://"));
        let (_, address) = origin.ok_or_else(|| io::Error::other("it did not start"))?;
        Ok(address.to_owned())
    }
}

impl Drop for Server {
    /// Cargo runs a program in its own place, so that it is the program that gets the signal. It may have ended already.
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        drop(fs::remove_dir_all(&self.data));
    }
}

/// The folder with the binaries of this build, which is ours: cargo may have been told to build elsewhere.
pub(crate) fn binaries() -> Result<PathBuf, Failure> {
    let unreadable = |cause| Failure::Unreadable { path: "the path of xtask itself".to_owned(), cause };
    let mut path = env::current_exe().map_err(unreadable)?;
    path.pop();
    Ok(path)
}

/// Builds the binary that the tests use, by the same words: other ones would have cargo build every dependency again.
pub(crate) fn build(root: &Path, features: &[&str]) -> Result<PathBuf, Failure> {
    let build = ["test", "--no-run", "--workspace", "--locked", "--test", "http"];
    command::run(cargo(root, &[&build[..], features].concat()))?;
    Ok(binaries()?.join("redrive"))
}
