//! Processes that are named by their number.

use std::fs;
use std::io;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::Failure;

/// The number of a child as the kernel's calls want it.
pub(crate) fn pid(number: u32) -> Result<Pid, Failure> {
    let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::Error::other("no process has this number"))
        .map_err(Failure::refused(number.to_string()))
}

/// Sends a signal to a process that may have ended already.
pub(crate) fn signal(pid: Pid, signal: Signal) -> Result<(), Failure> {
    sent(kill_process(pid, signal), pid)
}

/// The same to all of its group.
pub(crate) fn signal_group(pid: Pid, signal: Signal) -> Result<(), Failure> {
    sent(kill_process_group(pid, signal), pid)
}

fn sent(outcome: rustix::io::Result<()>, pid: Pid) -> Result<(), Failure> {
    match outcome {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(cause) => Err(Failure::refused(format!("a signal to process {pid:?}"))(cause.into())),
    }
}

/// The children of a process. It has to stand still, or there may be others when this returns.
pub(crate) fn children(parent: Pid) -> Result<Vec<Pid>, Failure> {
    let entries = fs::read_dir("/proc").map_err(Failure::refused("/proc"))?;
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let pids = numbers.filter_map(Pid::from_raw);
    Ok(pids.filter(|&pid| parent_of(pid) == Some(parent)).collect())
}

fn parent_of(pid: Pid) -> Option<Pid> {
    // The name in the second field may have spaces and brackets in it; nothing behind it does.
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let (_, behind) = stat.rsplit_once(") ")?;
    Pid::from_raw(behind.split(' ').nth(1)?.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_child_is_found_and_ends_by_a_signal() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let number = pid(child.id()).unwrap();
        assert!(children(rustix::process::getpid()).unwrap().contains(&number));
        signal(number, Signal::KILL).unwrap();
        assert!(!child.wait().unwrap().success());
        // It is gone, and nobody else is there to complain.
        signal(number, Signal::KILL).unwrap();
    }
}
