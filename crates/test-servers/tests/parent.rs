//! The program that runs a command beside a server, and what is left when it is killed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{fs, str};

use redrive_test_servers::POSTGRES_VARIABLE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

const PROGRAM: &str = env!("CARGO_BIN_EXE_redrive-test-servers");

fn beside_a_server(script: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["run", "--", "sh", "-c", script]).env_remove(POSTGRES_VARIABLE);
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
fn the_command_gets_the_url_and_its_exit_code_is_passed_on() {
    let script = format!("psql \"${POSTGRES_VARIABLE}\" -Atc 'SELECT 40 + 2'; exit 7");
    let output = beside_a_server(&script).output().unwrap();
    assert_eq!((output.status.code(), str::from_utf8(&output.stdout)), (Some(7), Ok("42\n")));
    let killed = beside_a_server("kill -TERM $$").output().unwrap();
    assert_eq!(killed.status.code(), Some(143));
}

#[test]
fn a_server_that_is_there_already_is_used() {
    let mut command = beside_a_server(&format!("echo \"${POSTGRES_VARIABLE}\""));
    let output = command.env(POSTGRES_VARIABLE, "postgres://elsewhere/db").output().unwrap();
    assert_eq!(str::from_utf8(&output.stdout), Ok("postgres://elsewhere/db\n"));
}

#[test]
fn a_wrong_command_line_starts_nothing() {
    for arguments in [&[][..], &["run"], &["run", "sh"], &["start", "--", "sh"]] {
        let output = Command::new(PROGRAM).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_server_goes_with_the_process_that_started_it() {
    let mut parent = beside_a_server("echo started; cat").spawn().unwrap();
    let mut output = BufReader::new(parent.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");

    let children = children(parent.id());
    let folder = children.iter().find_map(|(_, line)| line.split_once(" -D ")?.1.strip_suffix("/data "));
    let folder = PathBuf::from(folder.expect("a postmaster is among them"));
    assert!(folder.join("data").is_dir());
    // The server and who watches over its folder; the command itself is the third, and is ended by the end of its input.
    let ends: Vec<_> = children
        .iter()
        .filter(|(_, line)| line.contains(folder.to_str().unwrap()))
        .map(|(pid, _)| pidfd_open(*pid, PidfdFlags::empty()).unwrap())
        .collect();
    assert_eq!((children.len(), ends.len()), (3, 2), "{children:?}");

    let stdin = parent.stdin.take();
    parent.kill().unwrap();
    parent.wait().unwrap();
    for end in &ends {
        let minute = Timespec { tv_sec: 60, tv_nsec: 0 };
        let ended = poll(&mut [PollFd::new(end, PollFlags::IN)], Some(&minute)).unwrap();
        assert_eq!(ended, 1, "something is still there after a minute");
    }
    assert!(!folder.exists());
    drop(stdin);
    assert_eq!(output.read_to_string(&mut line).unwrap(), 0);
}
