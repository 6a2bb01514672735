//! `cargo xtask fuzz`: the fuzz targets under libFuzzer, for minutes or hours instead of a test run's second each.
//!
//! libFuzzer sees every branch that an input takes and every comparison that it fails. The compiler puts that in by
//! flags that the stable toolchain has; they are those of `cargo fuzz --sanitizer none`. The build has a folder of its own
//! below `target`, because with other flags everything is built anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Exit;
use crate::command::{self, Failure, cargo};

const MINUTES_DEFAULT: f64 = 10.0;
/// The longest input that is tried.
const INPUT_BYTES_MAX: usize = 16 * 1024;
/// An input that takes longer than this hangs.
const SECONDS_MAX: usize = 10;
/// What one target may take of the machine's memory.
const MEBIBYTES_MAX: usize = 2_048;

const CORPUS: &str = "crates/fuzz/corpus";
const OUTPUT: &str = "target/fuzz";

/// What the compiler is told, so that libFuzzer sees what an input does.
const FLAGS: [&str; 9] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-sanitizer-coverage-stack-depth",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
];

/// What was asked for.
#[derive(Debug, PartialEq)]
struct Wanted {
    minutes: f64,
    target: Option<String>,
}

pub(crate) fn run(root: &Path, flags: &[String]) -> Result<(), Exit> {
    let wanted = wanted(flags).map_err(Exit::Usage)?;
    let all = targets(root)?;
    let chosen = match &wanted.target {
        None => all,
        Some(name) if all.contains(name) => vec![name.clone()],
        Some(name) => {
            return Err(Exit::Usage(format!("there is no target `{name}`, only {}", all.join(", "))));
        }
    };
    let program = build(root)?;
    let seconds = seconds_each(wanted.minutes, chosen.len());
    let mut failed = Vec::new();
    for (number, target) in (1..).zip(&chosen) {
        eprintln!("\n== {target}: {number} of {}, {seconds} s", chosen.len());
        if let Err(failure) = fuzz(root, &program, target, seconds) {
            eprintln!("== {target}: {failure}");
            failed.push(target.clone());
        }
    }
    if failed.is_empty() {
        eprintln!("\nno input failed");
        return Ok(());
    }
    Err(Failure::Broken { targets: failed, folder: format!("{OUTPUT}/failed") }.into())
}

fn wanted(flags: &[String]) -> Result<Wanted, String> {
    let mut wanted = Wanted { minutes: MINUTES_DEFAULT, target: None };
    let mut seen: Vec<&str> = Vec::new();
    for pair in flags.chunks(2) {
        let flag = pair[0].as_str();
        if !["--minutes", "--target"].contains(&flag) {
            return Err(format!("fuzz does not know `{flag}`"));
        }
        let Some(value) = pair.get(1) else {
            return Err(format!("{flag} needs a value"));
        };
        if seen.contains(&flag) {
            return Err(format!("{flag} is given twice"));
        }
        seen.push(flag);
        match (flag, value.parse()) {
            ("--target", _) => wanted.target = Some(value.clone()),
            (_, Ok(minutes)) if f64::is_finite(minutes) && minutes > 0.0 => wanted.minutes = minutes,
            _ => return Err(format!("--minutes takes a number greater than 0, not `{value}`")),
        }
    }
    Ok(wanted)
}

/// The time of each target, in whole seconds as libFuzzer wants them. None is left out, so a short time gets longer.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "nobody waits that long")]
fn seconds_each(minutes: f64, targets: usize) -> u64 {
    let each = minutes * 60.0 / f64::from(u32::try_from(targets).unwrap_or(u32::MAX).max(1));
    each.ceil() as u64
}

/// The targets by the folders of their inputs: a target without one fails its test.
fn targets(root: &Path) -> Result<Vec<String>, Failure> {
    let unreadable = |cause| Failure::Unreadable { path: CORPUS.to_owned(), cause };
    let listed = fs::read_dir(root.join(CORPUS)).map_err(unreadable)?;
    let names = listed.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<String> = names.collect();
    names.sort();
    Ok(names)
}

fn build(root: &Path) -> Result<PathBuf, Failure> {
    let compiler = Command::new("c++").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !compiler.is_ok_and(|status| status.success()) {
        return Err(Failure::NotInstalled { tool: "a C++ compiler", remedy: "apt-get install g++" });
    }
    let host = host()?;
    let package =
        ["build", "--locked", "-p", "redrive-fuzz", "--features", "libfuzzer", "--bin", "libfuzzer"];
    // With a target named, the flags do not reach build scripts and macros, which must run without libFuzzer.
    let output = ["--target", host.as_str(), "--target-dir", OUTPUT];
    let mut command = cargo(root, &[&package[..], &output].concat());
    command.env("RUSTFLAGS", FLAGS.join(" "));
    command::run(command)?;
    Ok(root.join(OUTPUT).join(host).join("debug/libfuzzer"))
}

fn host() -> Result<String, Failure> {
    let mut command = Command::new("rustc");
    command.args(["--print", "host-tuple"]);
    Ok(String::from_utf8_lossy(&command::output(command)?).trim().to_owned())
}

/// Runs one target. What it finds worth keeping goes on from run to run below `target`; the corpus in the repository is
/// only read.
fn fuzz(root: &Path, program: &Path, target: &str, seconds: u64) -> Result<(), Failure> {
    let (found, failed) = (format!("{OUTPUT}/found/{target}"), format!("{OUTPUT}/failed"));
    for folder in [&found, &failed] {
        let path = folder.clone();
        fs::create_dir_all(root.join(folder)).map_err(|cause| Failure::Unreadable { path, cause })?;
    }
    let mut command = Command::new(program);
    command.current_dir(root).env("REDRIVE_FUZZ_TARGET", target);
    command.args([
        format!("-max_total_time={seconds}"),
        format!("-max_len={INPUT_BYTES_MAX}"),
        format!("-timeout={SECONDS_MAX}"),
        format!("-rss_limit_mb={MEBIBYTES_MAX}"),
        format!("-artifact_prefix={failed}/{target}-"),
        "-print_final_stats=1".to_owned(),
    ]);
    command.args([&found, &format!("{CORPUS}/{target}")]);
    command::run_telling(command, is_worth_telling)
}

/// Whether a person wants to see a line of libFuzzer's: how far it is, how it went, and what failed, but not every input
/// that led somewhere new.
fn is_worth_telling(line: &str) -> bool {
    let detail = ["INFO:", "WARNING:", "\tNEW_FUNC", "\tNEW_PC"].iter().any(|start| line.starts_with(start));
    let recommended = line.starts_with("###") || line.contains(" # Uses: ");
    !detail && !recommended && (!line.starts_with('#') || line.contains("pulse"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_all(words: &[&str]) -> Result<Wanted, String> {
        let flags: Vec<String> = words.iter().map(ToString::to_string).collect();
        wanted(&flags)
    }

    #[test]
    fn ten_minutes_of_every_target_unless_told_otherwise() {
        assert_eq!(check_all(&[]), Ok(Wanted { minutes: 10.0, target: None }));
        let wanted = Wanted { minutes: 0.5, target: Some("receipt".to_owned()) };
        assert_eq!(check_all(&["--target", "receipt", "--minutes", "0.5"]), Ok(wanted));
    }

    #[test]
    fn the_time_is_shared_out_and_no_target_goes_without() {
        assert_eq!(seconds_each(10.0, 30), 20);
        assert_eq!(seconds_each(0.1, 30), 1);
    }

    #[test]
    fn progress_and_failures_are_told_and_every_new_input_is_not() {
        for line in ["#1048576 pulse  cov: 90 ft: 301", "stat::average_exec_per_sec: 5", "thread panicked at"]
        {
            assert!(is_worth_telling(line), "{line}");
        }
        for line in ["#12 NEW    cov: 90", "INFO: Seed: 1", "\"a\" # Uses: 3", "###### End of it ######"] {
            assert!(!is_worth_telling(line), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for words in [&["--hours", "1"][..], &["--minutes"], &["--minutes", "0"], &["--minutes", "NaN"]] {
            assert!(check_all(words).is_err(), "{words:?}");
        }
        assert_eq!(check_all(&["--target", "a", "--target", "b"]), Err("--target is given twice".to_owned()));
    }
}
