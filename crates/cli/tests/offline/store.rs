//! `redrive store`: a directory that a real server left, looked at, damaged, repaired, copied and brought back.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::run::{Ran, Server, redrive};

/// How many messages are in the directory.
const MESSAGES: u64 = 40;

/// A directory with `data` in it, which a server has left.
async fn left() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    server.enqueue("orders", usize::try_from(MESSAGES).unwrap()).await;
    server.stop();
    dir
}

fn store(dir: &Path, arguments: &[&str]) -> Ran {
    redrive(dir, &[&["store"], arguments].concat())
}

fn messages(dir: &Path, data: &str) -> u64 {
    store(dir, &["verify", data, "--json"]).json()["messages"].as_u64().unwrap()
}

/// Flips a bit in the middle of what was written.
fn damage(dir: &Path) {
    let used = store(dir, &["stats", "data", "--json"]).json()["total_bytes"].as_u64().unwrap();
    let file = OpenOptions::new().read(true).write(true).open(dir.join("data/0000000001.segment")).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, used / 2).unwrap();
    file.write_all_at(&[byte[0] ^ 8], used / 2).unwrap();
}

/// Everything in a directory but the lock.
fn content(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name() != "lock")
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn a_whole_directory_is_verified_and_counted_without_changing_it() {
    let dir = left().await;
    let before = content(&dir.path().join("data"));
    let text = store(dir.path(), &["verify", "data"]).ok();
    assert!(text.starts_with("state             ok\n") && text.contains("messages          40\n"), "{text}");
    let stats = store(dir.path(), &["stats", "data"]).ok();
    let orders = stats.lines().find(|line| line.starts_with("orders ")).unwrap();
    assert_eq!(
        orders.split_whitespace().take(6).collect::<Vec<&str>>(),
        ["orders", "40", "0", "0", "0", "0"]
    );
    let repaired = store(dir.path(), &["repair", "data"]).ok();
    assert_eq!(repaired, "nothing is damaged\n");
    assert!(before == content(&dir.path().join("data")), "a look changed something");
}

#[tokio::test]
async fn a_repair_says_what_is_lost_and_needs_a_word() {
    let dir = left().await;
    damage(dir.path());
    let damaged = content(&dir.path().join("data"));
    let verify = store(dir.path(), &["verify", "data"]);
    verify.failed(1, "0000000001.segment at offset ");
    verify.failed(1, "is damaged");
    verify.failed(1, "`redrive store repair` says what a repair would lose");
    let looked = store(dir.path(), &["repair", "data", "--dry-run"]).ok();
    assert!(looked.contains("whole frames behind it would be lost, at least"), "{looked}");
    let refused = store(dir.path(), &["repair", "data"]);
    refused.failed(2, "say --yes to do it, or --dry-run to look");
    refused.failed(2, "whole frames behind it would be lost, at least");
    assert!(damaged == content(&dir.path().join("data")), "nobody said yes");
    let done = store(dir.path(), &["repair", "data", "--yes", "--json"]).json();
    assert_eq!((&done["done"], &done["damaged"]), (&true.into(), &true.into()));
    assert!(done["frames_lost"].as_u64().unwrap() > 0, "{done}");
    let kept = messages(dir.path(), "data");
    assert!(kept > 0 && kept < MESSAGES, "{kept} messages stood before the damage");
    // It is a store like any other.
    let server = Server::start(dir.path());
    server.enqueue("orders", 1).await;
    server.stop();
    assert_eq!(messages(dir.path(), "data"), kept + 1);
}

#[tokio::test]
async fn a_backup_comes_back_and_what_it_replaces_is_kept() {
    let dir = left().await;
    let text = store(dir.path(), &["backup", "data", "copy"]).ok();
    assert!(text.starts_with("backup            copy\n"), "{text}");
    assert_eq!(messages(dir.path(), "copy"), MESSAGES);
    store(dir.path(), &["backup", "data", "copy"]).failed(1, "the target must be empty");
    // Into nothing, nobody is asked.
    store(dir.path(), &["restore", "copy", "fresh"]).ok();
    assert_eq!(messages(dir.path(), "fresh"), MESSAGES);
    damage(dir.path());
    let refused = store(dir.path(), &["restore", "copy", "data"]);
    refused.failed(
        2,
        "put a damaged store in data aside as data.before-restore-1, and restore 40 messages there",
    );
    let looked = store(dir.path(), &["restore", "copy", "fresh", "--dry-run"]).ok();
    assert!(looked.starts_with("would put 40 messages of 1 queues in fresh aside as"), "{looked}");
    store(dir.path(), &["restore", "copy", "data/", "--yes"]).ok();
    assert_eq!(messages(dir.path(), "data"), MESSAGES);
    store(dir.path(), &["verify", "data.before-restore-1"]).failed(1, "is damaged");
}

#[tokio::test]
async fn a_directory_that_a_server_has_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    server.enqueue("orders", 1).await;
    for (arguments, said) in [
        (&["verify", "data"][..], "stop it first"),
        (&["stats", "data"], "`redrive queue list` asks it"),
        (&["repair", "data", "--yes"], "stop it first"),
        (&["backup", "data", "copy"], "a backup of a running store can be made only from inside its process"),
    ] {
        let ran = store(dir.path(), arguments);
        ran.failed(4, "data is in use by a running server: ");
        ran.failed(4, said);
    }
    assert!(!dir.path().join("copy").exists());
    server.stop();
    store(dir.path(), &["backup", "data", "copy"]).ok();
    let server = Server::start(dir.path());
    store(dir.path(), &["restore", "copy", "data", "--yes"]).failed(4, "data is in use by a running server");
    drop(server);
}

#[test]
fn what_is_no_store_is_told() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("empty")).unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    for verb in ["verify", "stats", "repair"] {
        store(dir.path(), &[verb, "nowhere"]).failed(1, "nowhere: No such file");
        store(dir.path(), &[verb, "empty"]).failed(2, "empty has no store in it");
        store(dir.path(), &[verb, "file"]).failed(2, "file is no directory");
        assert!(!dir.path().join("nowhere").exists(), "nobody who only looks makes a directory");
    }
    store(dir.path(), &["restore", "nowhere", "target"]).failed(1, "nowhere: No such file");
    store(dir.path(), &["restore", "empty", "target"]).failed(2, "empty has no store in it");
    assert!(!dir.path().join("target").exists());
    store(dir.path(), &["verify"]).failed(2, "<DIR>");
}
