//! A server of the bench's own: this program, started once more, and what it costs.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, anyhow};

/// What the program prints when it is ready, before its address.
const READY: &str = "redrive is ready on http://";

/// A server process, which ends with this.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    address: String,
}

impl Process {
    /// `redrive serve`, with what it has by default, on a directory of its own; with a key where one is given.
    pub(crate) fn serve(dir: &Path, key: Option<&str>) -> anyhow::Result<Self> {
        let data = dir.join("data");
        let mut command = Self::command()?;
        command.args(["serve", "--listen", "127.0.0.1:0", "--log-level", "warn", "--data"]).arg(data);
        command.envs(key.map(|key| (crate::key::BOOTSTRAP, key)));
        // Where somebody has a configuration lying about, it is not meant.
        command.current_dir(dir);
        Self::start(command)
    }

    /// The handler that only parses.
    pub(crate) fn parse_only() -> anyhow::Result<Self> {
        let mut command = Self::command()?;
        command.arg("bench-parse-only");
        Self::start(command)
    }

    fn command() -> anyhow::Result<Command> {
        let mut command = Command::new(std::env::current_exe().context("where this program is")?);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("REDRIVE_") {
                command.env_remove(name);
            }
        }
        Ok(command)
    }

    fn start(mut command: Command) -> anyhow::Result<Self> {
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("starting a server")?;
        let mut process = Self { child, address: String::new() };
        let stdout = process.child.stdout.take().ok_or_else(|| anyhow!("the server has no output"))?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).context("reading what the server says")?;
        let address = line.trim().strip_prefix(READY).ok_or_else(|| anyhow!("the server did not start"))?;
        address.clone_into(&mut process.address);
        Ok(process)
    }

    /// Host and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it has used so far, user and system, all threads together.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))
            .context("what the server has used")?;
        cpu_ticks(&stat)
            .map(|ticks| Duration::from_secs(ticks) / ticks_per_second())
            .ok_or_else(|| anyhow!("what the server has used: {stat}"))
    }

    /// The memory that it has in RAM, in bytes.
    pub(crate) fn resident_bytes(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))
            .context("what the server has in memory")?;
        let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = kib.and_then(|text| text.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        Ok(kib.ok_or_else(|| anyhow!("what the server has in memory"))? * 1_024)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn ticks_per_second() -> u32 {
    u32::try_from(rustix::param::clock_ticks_per_second()).unwrap_or(100).max(1)
}

/// User and system time in clock ticks: the 14th and 15th field. The second is a name that may hold anything.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_behind_whatever_the_name_is() {
        let stat = "17 (a ) (b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 4 0";
        assert_eq!(cpu_ticks(stat), Some(300));
        assert_eq!(cpu_ticks("17 (redrive) S 1"), None);
    }
}
