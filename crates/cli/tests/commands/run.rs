//! The real binary, run as somebody runs it, in an environment without surprises.

use std::io::Write;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::server::Server;

/// How a command ended, and what it printed.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// It worked, and this is what it printed.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// It worked, and printed JSON.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.ok()).unwrap()
    }

    /// It ended with this code, printed no data, and said something like this.
    #[track_caller]
    pub(crate) fn failed(self, code: i32, said: &str) {
        assert_eq!((self.code, &*self.out), (code, ""), "{self:?}");
        assert!(self.err.contains(said), "{said}: {self:?}");
    }
}

/// A command with nothing in its environment but where the server is.
pub(crate) fn command(server: &Server, arguments: &[&str]) -> Command {
    let mut command = bare(arguments);
    command.env("REDRIVE_URL", server.url("")).env("HOME", server.dir.path()).current_dir(server.dir.path());
    command.envs(server.token.as_ref().map(|token| ("REDRIVE_TOKEN", token)));
    command
}

/// A command with nothing in its environment.
pub(crate) fn bare(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
    command.env_clear().args(arguments).stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Ran {
    Ran::of(command.output().unwrap())
}

/// Asks a server; arguments are divided by spaces.
pub(crate) fn redrive(server: &Server, line: &str) -> Ran {
    run(&mut command(server, &line.split_whitespace().collect::<Vec<_>>()))
}

/// The same with something on stdin.
pub(crate) fn fed(server: &Server, line: &str, stdin: &[u8]) -> Ran {
    let mut child = piped(&mut command(server, &line.split_whitespace().collect::<Vec<_>>()));
    child.stdin.take().unwrap().write_all(stdin).unwrap();
    Ran::of(child.wait_with_output().unwrap())
}

/// Starts a command that the test talks with.
pub(crate) fn piped(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

const TIME: &str = "0000-00-00T00:00:00.000Z";
const ID: &str = "00000000-0000-0000-0000-000000000000";

/// The text with times and ids taken out: what is left is the same in every run. Widths stay.
pub(crate) fn masked(text: &str) -> String {
    let like = |text: &str, shape: &str| {
        text.len() == shape.len()
            && text.chars().zip(shape.chars()).all(|(c, shape)| match shape {
                '0' => c.is_ascii_hexdigit(),
                shape => c == shape,
            })
    };
    let (mut shown, mut rest) = (String::new(), text);
    while let Some(c) = rest.chars().next() {
        let shape = [TIME, ID]
            .into_iter()
            .find(|shape| rest.get(..shape.len()).is_some_and(|text| like(text, shape)));
        match shape {
            Some(shape) => shown.push_str(shape),
            None => shown.push(c),
        }
        rest = &rest[shape.map_or(c.len_utf8(), str::len)..];
    }
    shown
}
