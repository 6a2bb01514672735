//! `redrive top` on a pseudo terminal, which `script` of util-linux makes.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::json;

use crate::run::{Server, redrive};

/// What gives the terminal back: the other screen is left.
const LEFT: &str = "\u{1b}[?1049l";

/// The program on a terminal of its own.
struct Top {
    script: Child,
    keys: ChildStdin,
    picture: ChildStdout,
    seen: String,
}

impl Top {
    fn start(url: &str) -> Self {
        let program = env!("CARGO_BIN_EXE_redrive");
        let command = format!("stty rows 30 cols 120; exec {program} top --url {url}");
        let mut script = Command::new("script")
            .args(["--quiet", "--flush", "--return", "--command", &command, "/dev/null"])
            .env("TERM", "xterm-256color")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (keys, picture) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
        Self { script, keys, picture, seen: String::new() }
    }

    /// Waits until this is drawn.
    fn until(&mut self, words: &str) {
        let mut bytes = [0; 4_096];
        while !self.seen.contains(words) {
            let read = self.picture.read(&mut bytes).unwrap();
            assert!(read > 0, "it ended without {words:?}: {:?}", self.seen);
            self.seen += &String::from_utf8_lossy(&bytes[..read]);
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits for its end, and answers the code and what else was drawn.
    fn end(mut self) -> (i32, String) {
        self.picture.read_to_string(&mut self.seen).unwrap();
        (self.script.wait().unwrap().code().unwrap(), std::mem::take(&mut self.seen))
    }

    /// The program below `script`.
    fn pid(&self) -> String {
        let children = format!("/proc/{0}/task/{0}/children", self.script.id());
        std::fs::read_to_string(children).unwrap().trim().to_owned()
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.script.kill());
        drop(self.script.wait());
    }
}

async fn lease(server: &Server, consumer: &str) {
    let url = format!("{}/v1/queues/orders/lease", server.url);
    let answer = reqwest::Client::new().post(url).json(&json!({"consumer": consumer})).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 200);
}

#[tokio::test]
async fn queues_and_leases_are_seen_and_q_gives_the_terminal_back() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    server.enqueue("orders", 3).await;
    lease(&server, "worker-seventeen").await;
    let mut top = Top::start(&server.url);
    top.until("orders");
    top.until("worker-seventeen");
    assert!(!top.seen.contains(LEFT));
    top.press("?");
    top.until("Ctrl-C");
    top.press("q");
    let (code, seen) = top.end();
    assert!(code == 0 && seen.contains(LEFT), "{code} {seen:?}");
}

#[tokio::test]
async fn a_server_that_falls_silent_is_told_and_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    server.enqueue("orders", 1).await;
    let mut top = Top::start(&server.url);
    top.until("orders");
    // It does not answer any more, and then it does again.
    server.signal("-STOP");
    top.until("trying");
    server.signal("-CONT");
    server.enqueue("mailings", 1).await;
    top.until("mailings");
    // A signal is no reason to leave the terminal in another mode.
    assert!(Command::new("kill").args(["-TERM", &top.pid()]).status().unwrap().success());
    let (code, seen) = top.end();
    assert!(code == 130 && seen.contains(LEFT), "{code} {seen:?}");
}

#[test]
fn without_a_terminal_there_is_nothing_to_draw_on() {
    redrive(Path::new("/"), &["top"])
        .failed(2, "top needs a terminal; `redrive queue list` prints the queues once");
}
