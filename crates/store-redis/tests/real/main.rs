//! Power cuts that are real: the server is killed, then the file system of its data ends without a word to the disk.
//!
//! A test that needs root or a loop device and has none says "not run" and why; that is not "passed".

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ledger;
mod power;
mod seconds;
mod tokens;
#[path = "../world/mod.rs"]
mod world;

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use redrive_test_servers::{AppendFsync, LoopFs, Redis, RedisSettings};

type Test = fn() -> Result<(), Failed>;

/// The size of a disk, in MiB.
const DISK: u64 = 64;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let tests: [(&str, Test); 7] = [
        (
            "a_power_cut_loses_nothing_that_was_acknowledged",
            power::a_power_cut_loses_nothing_that_was_acknowledged,
        ),
        ("without_syncing_a_power_cut_is_seen_to_lose", power::without_syncing_a_power_cut_is_seen_to_lose),
        (
            "what_was_synced_within_the_second_is_there_after_a_power_cut",
            seconds::what_was_synced_within_the_second_is_there_after_a_power_cut,
        ),
        (
            "what_was_answered_two_seconds_before_a_power_cut_is_there",
            seconds::what_was_answered_two_seconds_before_a_power_cut_is_there,
        ),
        (
            "a_lease_that_was_lost_changes_nothing_and_its_id_is_given_to_nobody_else",
            tokens::a_lease_that_was_lost_changes_nothing_and_its_id_is_given_to_nobody_else,
        ),
        (
            "an_epoch_that_was_lost_gives_no_id_out_again",
            tokens::an_epoch_that_was_lost_gives_no_id_out_again,
        ),
        (
            "an_instance_that_was_given_more_than_the_server_knows_refuses_the_leases_of_before",
            tokens::an_instance_that_was_given_more_than_the_server_knows_refuses_the_leases_of_before,
        ),
    ];
    let missing = if arguments.list { None } else { LoopFs::missing() };
    let trials = tests.into_iter().map(|(name, test)| match missing.clone() {
        None => Trial::test(name, test),
        Some(reason) => not_run(name, &reason),
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// Shown as ignored, with the reason; asked for all the same, it fails.
fn not_run(name: &str, reason: &str) -> Trial {
    let reason = format!("not run: {reason}");
    let fails = reason.clone();
    Trial::test(name, move || Err(fails.into())).with_kind(reason).with_ignored_flag(true)
}

/// A server whose power can be cut.
struct Site {
    server: Redis,
    disk: LoopFs,
    sync: AppendFsync,
}

impl Site {
    fn new(sync: AppendFsync) -> Result<Self, Failed> {
        let disk = LoopFs::new(DISK)?;
        let settings = RedisSettings::default().appendfsync(sync).data_in(disk.root().join("data"));
        Ok(Self { server: Redis::start(settings)?, disk, sync })
    }

    /// The power fails, and comes back. In this order: a sync that races the end of the file system is told a success that
    /// did not happen, and that is not the server's fault.
    fn cut(&mut self) -> Result<(), Failed> {
        self.server.kill()?;
        self.disk.cut()?;
        if self.sync != AppendFsync::Always {
            without_zeros(&self.disk.root().join("data/appendonlydir"))?;
        }
        self.server.restart()?;
        Ok(())
    }
}

/// Takes the zeros from the ends of files, as `redis-check-aof --fix` does. A file system may keep how long a file has become and not what
/// was written to its last block, where nobody has synced that; and a server starts with no such file.
fn without_zeros(folder: &Path) -> io::Result<()> {
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        let bytes = fs::read(&path)?;
        let kept = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        if path.extension().is_some_and(|end| end == "aof") && kept < bytes.len() {
            OpenOptions::new().write(true).open(&path)?.set_len(kept as u64)?;
        }
    }
    Ok(())
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(test)
}
