//! The real binary as a server with data of its own: for pages that do not start one themselves, and to ask for what the
//! reference says.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

/// A running server.
pub(crate) struct Server {
    child: Child,
    /// `http://` and the address.
    pub(crate) url: String,
}

impl Server {
    /// On a free port, with its data and its log in `dir`.
    pub(crate) fn start(dir: &Path) -> Result<Self, String> {
        Self::start_with(dir, &[])
    }

    /// The same with variables in its environment.
    pub(crate) fn start_with(dir: &Path, variables: &[(&str, String)]) -> Result<Self, String> {
        let log = dir.join("server.log");
        let fault = |error: std::io::Error| format!("redrive serve: {error}");
        let mut child = Command::new(env!("CARGO_BIN_EXE_redrive"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(dir.join("server-data"))
            .envs(variables.iter().map(|(name, value)| (*name, value.as_str())))
            .current_dir(dir)
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log).map_err(fault)?)
            .spawn()
            .map_err(fault)?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let Some(Ok(ready)) = lines.next() else {
            return Err(format!("it did not start: {}", std::fs::read_to_string(&log).unwrap_or_default()));
        };
        // What else it prints must not fill the pipe.
        thread::spawn(move || lines.for_each(drop));
        let url = ready.rsplit(' ').next().unwrap_or_default().to_owned();
        Ok(Self { child, url })
    }

    /// The port as it stands in addresses.
    pub(crate) fn port(&self) -> &str {
        self.url.rsplit(':').next().unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
