//! The real binary, run to its end, or as a server for one test.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// The program in a directory, with nothing in its environment but what the test says.
pub(crate) fn program(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).current_dir(dir);
    command
}

/// How the program ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(command: &mut Command) -> Self {
        let ran = command.stdin(Stdio::null()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: ran.status.code().unwrap(), out: text(ran.stdout), err: text(ran.stderr) }
    }

    /// It did what it was told.
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.ok()).unwrap()
    }

    /// It ended with this code, and said this.
    pub(crate) fn failed(&self, code: i32, said: &str) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.err.contains(said), "{said:?} is not in {self:?}");
    }
}

pub(crate) fn redrive(dir: &Path, arguments: &[&str]) -> Ran {
    Ran::of(program(dir).args(arguments))
}

/// A server on a free port, which ends with the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
}

impl Server {
    /// With `data` in the directory as its own.
    pub(crate) fn start(dir: &Path) -> Self {
        let mut child = program(dir)
            .args(["serve", "--listen", "127.0.0.1:0", "--data", "data", "--log-level", "error"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let ready = BufReader::new(child.stdout.take().unwrap()).lines().next().unwrap().unwrap();
        Self { child, url: ready.rsplit(' ').next().unwrap().to_owned() }
    }

    /// Enqueues so many messages, one after the other.
    pub(crate) async fn enqueue(&self, queue: &str, messages: usize) {
        let client = reqwest::Client::builder().timeout(Duration::from_mins(1)).build().unwrap();
        for n in 0..messages {
            let url = format!("{}/v1/queues/{queue}/messages", self.url);
            let answer =
                client.post(url).json(&json!({"body": format!("message {n}")})).send().await.unwrap();
            assert_eq!(answer.status().as_u16(), 201, "{:?}", answer.text().await);
        }
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn stop(mut self) {
        self.signal("-TERM");
        assert!(self.child.wait().unwrap().success());
    }

    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
