//! The program that runs a command beside servers, and what is left when it is killed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs, str};

use redrive_test_servers::{POSTGRES_VARIABLE, REDIS_CLUSTER_VARIABLE, REDIS_VARIABLE};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

const PROGRAM: &str = env!("CARGO_BIN_EXE_redrive-test-servers");
const VARIABLES: [&str; 3] = [POSTGRES_VARIABLE, REDIS_VARIABLE, REDIS_CLUSTER_VARIABLE];

fn beside_servers(script: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["run", "--", "sh", "-c", script]);
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// The processes that a process has started: number and command line.
fn children(parent: u32) -> Vec<(Pid, String)> {
    let numbers =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let is_child = |number: &i32| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        let parent_field = stat.rsplit_once(") ").and_then(|(_, behind)| behind.split(' ').nth(1));
        parent_field == Some(&parent.to_string())
    };
    let described = |number: i32| {
        let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        Some((Pid::from_raw(number)?, String::from_utf8_lossy(&line).replace('\0', " ")))
    };
    numbers.filter(is_child).filter_map(described).collect()
}

#[test]
fn the_command_gets_the_urls_and_its_exit_code_is_passed_on() {
    let script = format!(
        "psql \"${POSTGRES_VARIABLE}\" -Atc 'SELECT 40 + 2'
        redis-cli -u \"${REDIS_VARIABLE}\" PING
        echo \"${REDIS_CLUSTER_VARIABLE}\" | tr -d 0-9
        exit 7"
    );
    let output = beside_servers(&script).output().unwrap();
    let expected = "42\nPONG\nredis+cluster://...:,...:,...:\n";
    assert_eq!((output.status.code(), str::from_utf8(&output.stdout)), (Some(7), Ok(expected)));
    let killed = beside_servers("kill -TERM $$").output().unwrap();
    assert_eq!(killed.status.code(), Some(143));
}

#[test]
fn a_server_that_is_there_already_is_used() {
    let mut command = beside_servers(&VARIABLES.map(|variable| format!("echo \"${variable}\"")).join(";"));
    let elsewhere = ["postgres://elsewhere/db", "redis://elsewhere", "redis+cluster://elsewhere"];
    let output = command.envs(VARIABLES.into_iter().zip(elsewhere)).output().unwrap();
    assert_eq!(str::from_utf8(&output.stdout), Ok(format!("{}\n", elsewhere.join("\n")).as_str()));
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_wrong_command_line_starts_nothing() {
    for arguments in [&[][..], &["run"], &["run", "sh"], &["start", "--", "sh"]] {
        let output = Command::new(PROGRAM).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

/// The folder that a process works in, by its command line.
fn folder(line: &str) -> Option<PathBuf> {
    let temporary = env::temp_dir().join("redrive-");
    let path = line.split(' ').find(|word| word.starts_with(temporary.to_str().unwrap()))?;
    let depth = temporary.components().count();
    Some(path.split('/').take(depth).collect::<Vec<_>>().join("/").into())
}

#[test]
fn servers_go_with_the_process_that_started_them() {
    let mut parent = beside_servers("echo started; cat").spawn().unwrap();
    let mut output = BufReader::new(parent.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");

    // Each server and who watches over its folder; the command itself is one more, and is ended by the end of its input.
    let children = children(parent.id());
    let folders: Vec<PathBuf> = children.iter().filter_map(|(_, line)| folder(line)).collect();
    let ends: Vec<_> = children
        .iter()
        .filter(|(_, line)| folder(line).is_some())
        .map(|(pid, _)| pidfd_open(*pid, PidfdFlags::empty()).unwrap())
        .collect();
    let distinct: BTreeSet<&PathBuf> = folders.iter().collect();
    assert!(distinct.iter().all(|folder| folder.join("data").is_dir()), "{distinct:?}");
    // One PostgreSQL, one Redis, and three that are a cluster.
    assert_eq!((children.len(), ends.len(), distinct.len()), (11, 10, 5), "{children:?}");

    let stdin = parent.stdin.take();
    parent.kill().unwrap();
    parent.wait().unwrap();
    for end in &ends {
        let minute = Timespec { tv_sec: 60, tv_nsec: 0 };
        let ended = poll(&mut [PollFd::new(end, PollFlags::IN)], Some(&minute)).unwrap();
        assert_eq!(ended, 1, "something is still there after a minute");
    }
    assert!(!folders.iter().any(|folder| folder.exists()));
    drop(stdin);
    assert_eq!(output.read_to_string(&mut line).unwrap(), 0);
}
