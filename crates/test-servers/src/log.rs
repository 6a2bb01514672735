//! What a server says, as a signal: that it is ready, and that all of it is gone.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How many lines are kept.
const LINES_MAX: usize = 10_000;
/// How many of them a failure shows.
const LINES_SHOWN: usize = 40;

/// The log of one run of a server.
///
/// It comes through a pipe that every process of the server holds, so that its end is the end of the last of them.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<String>,
    /// How many lines came before those that are kept.
    forgotten: usize,
    ended: bool,
}

impl Log {
    /// Reads in a thread of its own: a server whose pipe is full stands still.
    pub(crate) fn of(pipe: impl Read + Send + 'static) -> Self {
        let log = Self { shared: Arc::default() };
        let shared = Arc::clone(&log.shared);
        thread::spawn(move || {
            for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
                shared.change(|state| state.keep(String::from_utf8_lossy(&line).into_owned()));
            }
            shared.change(|state| state.ended = true);
        });
        log
    }

    /// How many lines there were; what comes later has a higher number.
    pub(crate) fn position(&self) -> usize {
        let state = self.shared.state();
        state.forgotten + state.lines.len()
    }

    /// Waits for a line with these words at or behind a position; `false` if the server ends without it, or lets us
    /// wait for too long.
    pub(crate) fn says(&self, words: &str, from: usize, patience: Duration) -> bool {
        self.wait(patience, |state| state.ended || state.has(words, from)).has(words, from)
    }

    /// Waits until no process of the server is left; `false` if it takes too long.
    pub(crate) fn ends(&self, patience: Duration) -> bool {
        self.wait(patience, |state| state.ended).ended
    }

    /// The last lines.
    pub(crate) fn tail(&self) -> String {
        let state = self.shared.state();
        let from = state.lines.len().saturating_sub(LINES_SHOWN);
        let lines: Vec<&str> = state.lines.range(from..).map(String::as_str).collect();
        lines.join("\n")
    }

    fn wait(&self, patience: Duration, until: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let waited =
            self.shared.changed.wait_timeout_while(self.shared.state(), patience, |state| !until(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }
}

impl State {
    fn keep(&mut self, line: String) {
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
            self.forgotten += 1;
        }
        self.lines.push_back(line);
    }

    fn has(&self, words: &str, from: usize) -> bool {
        self.lines.iter().skip(from.saturating_sub(self.forgotten)).any(|line| line.contains(words))
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    const PATIENCE: Duration = Duration::from_mins(1);

    fn shell(script: &str) -> (Child, Log) {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let log = Log::of(child.stderr.take().unwrap());
        (child, log)
    }

    #[test]
    fn what_was_said_is_found_from_its_position_on() {
        let (mut child, log) = shell("echo one >&2; echo two >&2");
        child.wait().unwrap();
        assert!(log.ends(PATIENCE));
        assert!(log.says("one", 0, PATIENCE) && log.says("two", 1, PATIENCE));
        assert!(!log.says("one", 1, PATIENCE) && !log.says("three", 0, PATIENCE));
        assert_eq!((log.position(), log.tail().as_str()), (2, "one\ntwo"));
    }

    #[test]
    fn the_end_of_a_log_is_the_end_of_the_last_process() {
        let (mut child, log) = shell("exec 3<&0; cat <&3 >&2 & echo started >&2");
        // `wait` would close it.
        let stdin = child.stdin.take();
        child.wait().unwrap();
        assert!(log.says("started", 0, PATIENCE));
        assert!(!log.ends(Duration::ZERO));
        drop(stdin);
        assert!(log.ends(PATIENCE));
    }

    #[test]
    fn old_lines_are_forgotten_and_keep_their_numbers() {
        let mut state = State::default();
        for line in 0..=LINES_MAX {
            state.keep(format!("line {line}."));
        }
        assert!(!state.has("line 0.", 0) && state.has("line 1.", 1) && !state.has("line 1.", 2));
    }
}
