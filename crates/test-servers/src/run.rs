//! From the start of a server to the end that follows.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::Failure;
use crate::log::Log;
use crate::processes::{pid, signal, signal_group};

/// How long a server may take to start, recovery included, on a machine that does a lot else.
const START_MAX: Duration = Duration::from_mins(2);
/// How long a server may take to shut down before it is told with more emphasis.
const STOP_MAX: Duration = Duration::from_secs(10);

/// The first process of a server, whose child all others are, and what they say.
#[derive(Debug)]
pub(crate) struct Run {
    first: Child,
    log: Log,
}

impl Run {
    pub(crate) fn start(mut command: Command) -> Result<Self, Failure> {
        let program = command.get_program().to_string_lossy().into_owned();
        let started = || {
            let (reader, writer) = io::pipe()?;
            // A group of its own: who interrupts the tests does not mean the server, which ends behind them.
            command.process_group(0);
            command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
            let first = command.spawn()?;
            // It has kept the end of the pipe that only the server should hold.
            drop(command);
            Ok(Self { first, log: Log::of(reader) })
        };
        started().map_err(Failure::refused(program))
    }

    /// The number of the first process.
    pub(crate) fn number(&self) -> u32 {
        self.first.id()
    }

    pub(crate) fn pid(&self) -> Result<Pid, Failure> {
        pid(self.number())
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// Waits until the log says this at or behind a position.
    pub(crate) fn wait_for(&self, words: &str, from: usize) -> Result<(), Failure> {
        let said = self.log.says(words, from, START_MAX);
        said.then_some(()).ok_or_else(|| self.silent(words))
    }

    /// Sends a signal to the first process.
    pub(crate) fn signal(&self, sent: Signal) -> Result<(), Failure> {
        signal(self.pid()?, sent)
    }

    /// Sends a signal to every process that has stayed in the group of the first.
    pub(crate) fn signal_group(&self, sent: Signal) -> Result<(), Failure> {
        signal_group(self.pid()?, sent)
    }

    /// Whether all processes go by themselves before anybody loses patience.
    pub(crate) fn ends(&self) -> bool {
        self.log.ends(STOP_MAX)
    }

    /// All processes are gone, or about to go; the first of them is our child.
    pub(crate) fn ended(&mut self, awaited: &str) -> Result<(), Failure> {
        if !self.ends() {
            return Err(self.silent(awaited));
        }
        self.first.wait().map(drop).map_err(Failure::refused(awaited))
    }

    fn silent(&self, awaited: &str) -> Failure {
        Failure::Silent { awaited: awaited.to_owned(), log: self.log.tail() }
    }
}
