//! What is different where somebody sits at a terminal.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;

use crate::run::command;
use crate::server::Server;

/// A command whose stdin and stderr are a terminal, and the other side of that.
fn on_terminal(server: &Server, arguments: &[&str]) -> (Child, File) {
    let other = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&other).unwrap();
    unlockpt(&other).unwrap();
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&other, size).unwrap();
    let name = ptsname(&other, Vec::new()).unwrap();
    let terminal = File::options().read(true).write(true).open(OsStr::from_bytes(name.as_bytes())).unwrap();
    let mut command = command(server, arguments);
    command.env("TERM", "xterm").stdin(terminal.try_clone().unwrap()).stderr(terminal).stdout(Stdio::piped());
    (command.spawn().unwrap(), other.into())
}

/// The end of a command. One that does not end would hold up every other test.
fn ended(child: Child) -> Output {
    let id = child.id().to_string();
    let (tell, told) = mpsc::sync_channel(1);
    thread::spawn(move || tell.send(child.wait_with_output().unwrap()));
    told.recv_timeout(Duration::from_mins(1)).unwrap_or_else(|_| {
        drop(Command::new("kill").args(["-KILL", &id]).status());
        panic!("it does not end");
    })
}

/// Reads what is shown until this is among it.
fn shown(other: &mut File, words: &str) -> String {
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(words) {
        let mut piece = [0; 1_024];
        let read = other.read(&mut piece).unwrap();
        seen.extend_from_slice(&piece[..read]);
    }
    String::from_utf8(seen).unwrap()
}

#[tokio::test]
async fn who_sits_there_is_asked() {
    let server = Server::start();
    for _ in 0..3 {
        server.enqueue("orders", json!({"body": "x"})).await;
    }
    let purge = ["queue", "purge", "orders", "--wait", "--json"];
    let question = "redrive: this will discard 3 messages of orders that are not leased. Go on? [y/N] ";
    for answer in ["\n", "n\n", "perhaps\n"] {
        let (child, mut other) = on_terminal(&server, &purge);
        assert_eq!(shown(&mut other, "[y/N] "), question);
        other.write_all(answer.as_bytes()).unwrap();
        let ended = ended(child);
        assert_eq!((ended.status.code(), &*ended.stdout), (Some(1), b"" as &[u8]), "{answer:?}");
        assert_eq!(server.count("orders", "ready").await, 3);
    }
    let (child, mut other) = on_terminal(&server, &purge);
    shown(&mut other, "[y/N] ");
    other.write_all(b"yes\n").unwrap();
    let ended = ended(child);
    let operation: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((ended.status.code(), &operation["applied"]), (Some(0), &json!(3)));
    assert_eq!(server.count("orders", "ready").await, 0);
}

#[tokio::test]
async fn who_deletes_a_subscription_is_asked() {
    let server = Server::start();
    server.create("mail", json!({})).await;
    let target = json!({"kind": "queue", "queue": "mail"});
    server.post("/v1/subscriptions", json!({"id": "mail", "pattern": "a", "target": target})).await;
    for (answer, code, left) in [("n\n", 1, 1), ("y\n", 0, 0)] {
        let (child, mut other) = on_terminal(&server, &["subscription", "delete", "mail"]);
        let question = "redrive: this will delete subscription mail; queue mail stays. Go on? [y/N] ";
        assert_eq!(shown(&mut other, "[y/N] "), question);
        other.write_all(answer.as_bytes()).unwrap();
        assert_eq!(ended(child).status.code(), Some(code));
        let body = server.get("/v1/subscriptions").await.body;
        assert_eq!(body["subscriptions"].as_array().unwrap().len(), left, "{answer}");
    }
}

#[tokio::test]
async fn who_is_asked_may_press_ctrl_c() {
    let server = Server::start();
    server.enqueue("orders", json!({"body": "x"})).await;
    let (child, mut other) = on_terminal(&server, &["queue", "purge", "orders"]);
    shown(&mut other, "[y/N] ");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(ended(child).status.code(), Some(130));
    assert_eq!(server.count("orders", "ready").await, 1);
}

#[tokio::test]
async fn who_waits_there_sees_a_bar() {
    let server = Server::start();
    for _ in 0..3 {
        server.enqueue("orders", json!({"body": "x"})).await;
    }
    let (mut child, mut other) =
        on_terminal(&server, &["message", "discard", "orders", "--all", "--rate", "1/s", "--wait", "--yes"]);
    let bar = shown(&mut other, "/3 ");
    assert!(bar.contains("messages ["), "{bar:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}
