//! `cargo xtask model`: the model-based tests of the stores, for minutes or hours instead of a test run's seconds.
//!
//! The flags belong to the test that does the work and reach it as they were typed. They are checked here first,
//! because a typing error should not show only after a release build.

use std::path::Path;

use crate::Exit;
use crate::command::{self, cargo, cargo_beside_servers};

const MINUTES_DEFAULT: &str = "10";
const STORE_DEFAULT: &str = "memory";

pub(crate) fn run(root: &Path, flags: &[String]) -> Result<(), Exit> {
    let (store, flags) = checked(flags).map_err(Exit::Usage)?;
    // A cluster of a store is the same store, and another test.
    let (store_name, test) = match store.strip_suffix("-cluster") {
        Some(name) => (name, "model_cluster"),
        None => (store.as_str(), "model"),
    };
    let package = format!("redrive-store-{store_name}");
    let arguments = ["test", "--quiet", "--release", "--locked", "-p", &package, "--test", test, "--"];
    // What runs here needs no server; what does not gets one, installed where it is missing.
    let with = if matches!(store.as_str(), "memory" | "embedded") { cargo } else { cargo_beside_servers };
    let mut command = with(root, &arguments);
    command.args(flags);
    Ok(command::run(command)?)
}

/// The store, and the flags for its model test: a seed to replay, or else a time, with its default.
fn checked(flags: &[String]) -> Result<(String, Vec<String>), String> {
    let mut seen: Vec<&str> = Vec::new();
    let (mut store, mut passed) = (STORE_DEFAULT.to_owned(), Vec::new());
    for pair in flags.chunks(2) {
        let [flag, value] = pair else {
            return Err(lonely(&pair[0]));
        };
        if seen.contains(&flag.as_str()) {
            return Err(format!("{flag} is given twice"));
        }
        check(flag, value)?;
        seen.push(flag);
        if flag == "--store" {
            store.clone_from(value);
        } else {
            passed.extend([flag.clone(), value.clone()]);
        }
    }
    if seen.contains(&"--minutes") && seen.contains(&"--seed") {
        return Err("--seed replays one history and takes no --minutes".to_owned());
    }
    if passed.is_empty() {
        passed = vec!["--minutes".to_owned(), MINUTES_DEFAULT.to_owned()];
    }
    Ok((store, passed))
}

fn lonely(flag: &str) -> String {
    match flag {
        "--minutes" | "--seed" | "--store" => format!("{flag} needs a value"),
        _ => unknown(flag),
    }
}

fn unknown(flag: &str) -> String {
    format!("model does not know `{flag}`")
}

fn check(flag: &str, value: &str) -> Result<(), String> {
    let (valid, expected) = match flag {
        "--minutes" => (is_positive(value), "a number greater than 0"),
        "--seed" => (is_seed(value), "a 64-bit number, decimal or 0x hex"),
        "--store" => (is_store(value), "the name of a store, such as memory"),
        _ => return Err(unknown(flag)),
    };
    if valid { Ok(()) } else { Err(format!("{flag} takes {expected}, not `{value}`")) }
}

fn is_positive(value: &str) -> bool {
    value.parse::<f64>().is_ok_and(|minutes| minutes.is_finite() && minutes > 0.0)
}

fn is_seed(value: &str) -> bool {
    let (digits, radix) = value.strip_prefix("0x").map_or((value, 10), |hex| (hex, 16));
    // The parser of integers takes a sign, which no seed has.
    !digits.starts_with('+') && u64::from_str_radix(digits, radix).is_ok()
}

fn is_store(value: &str) -> bool {
    value.starts_with(|first: char| first.is_ascii_lowercase())
        && value.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_all(words: &[&str]) -> Result<(String, Vec<String>), String> {
        let flags: Vec<String> = words.iter().map(ToString::to_string).collect();
        checked(&flags)
    }

    #[test]
    fn ten_minutes_of_the_reference_unless_told_otherwise() {
        let (store, flags) = check_all(&[]).expect("valid");
        assert_eq!((store.as_str(), flags), ("memory", vec!["--minutes".to_owned(), "10".to_owned()]));
    }

    #[test]
    fn the_store_chooses_the_crate_and_the_rest_passes_untouched() {
        let (store, flags) = check_all(&["--store", "embedded", "--seed", "0xDEADbeef"]).expect("valid");
        assert_eq!((store.as_str(), flags), ("embedded", vec!["--seed".to_owned(), "0xDEADbeef".to_owned()]));
    }

    #[test]
    fn a_seed_is_one_history_and_takes_no_time() {
        assert!(check_all(&["--seed", "1", "--minutes", "2"]).is_err());
    }

    #[test]
    fn values_that_cannot_be_meant_are_refused() {
        for minutes in ["0", "-1", "ten", "inf", "NaN", ""] {
            assert!(check_all(&["--minutes", minutes]).is_err(), "{minutes}");
        }
        for seed in ["0x", "-1", "+1", "0xg", "18446744073709551616", ""] {
            assert!(check_all(&["--seed", seed]).is_err(), "{seed}");
        }
        for store in ["", "--seed", "Memory", "a/b"] {
            assert!(check_all(&["--store", store]).is_err(), "{store}");
        }
    }

    #[test]
    fn unknown_repeated_and_lonely_flags_are_refused() {
        assert_eq!(check_all(&["--hours", "1"]), Err("model does not know `--hours`".to_owned()));
        assert_eq!(check_all(&["soon"]), Err("model does not know `soon`".to_owned()));
        assert_eq!(check_all(&["--seed"]), Err("--seed needs a value".to_owned()));
        assert_eq!(check_all(&["--seed", "1", "--seed", "2"]), Err("--seed is given twice".to_owned()));
    }
}
