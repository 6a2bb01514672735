//! `cargo xtask bench-engine`: how fast the embedded store is, beside a bare loop that writes the same.
//!
//! The flags belong to the bench that does the work and reach it as they were typed. They are checked here first,
//! because a typing error should not show only after a release build; the names of groups are the bench's own.

use std::env;
use std::path::Path;

use crate::Exit;
use crate::command::{self, cargo};

pub(crate) fn run(root: &Path, flags: &[String]) -> Result<(), Exit> {
    let flags = checked(flags).map_err(Exit::Usage)?;
    let mut command = cargo(
        root,
        &["bench", "--quiet", "--locked", "-p", "redrive-store-embedded", "--bench", "engine", "--"],
    );
    command.args(flags);
    Ok(command::run(command)?)
}

/// The flags for the bench, each known, with its value where it has one.
fn checked(flags: &[String]) -> Result<Vec<String>, String> {
    let mut passed: Vec<String> = Vec::new();
    let mut words = flags.iter();
    while let Some(flag) = words.next() {
        if passed.contains(flag) {
            return Err(format!("{flag} is given twice"));
        }
        passed.push(flag.clone());
        match flag.as_str() {
            "--check" | "--quick" => {}
            "--only" => passed.push(value(flag, words.next())?),
            "--dir" => passed.push(from_here(&value(flag, words.next())?)),
            _ => return Err(format!("bench-engine does not know `{flag}`")),
        }
    }
    Ok(passed)
}

pub(crate) fn value(flag: &str, word: Option<&String>) -> Result<String, String> {
    match word {
        Some(word) if !word.is_empty() && !word.starts_with("--") => Ok(word.clone()),
        _ => Err(format!("{flag} needs a value")),
    }
}

/// The folder as seen from where the command was typed: cargo runs a bench in the folder of its crate.
fn from_here(dir: &str) -> String {
    let here = env::current_dir().unwrap_or_default();
    here.join(dir).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_all(words: &[&str]) -> Result<Vec<String>, String> {
        let flags: Vec<String> = words.iter().map(ToString::to_string).collect();
        checked(&flags)
    }

    #[test]
    fn flags_pass_as_they_were_typed() {
        let flags = ["--check", "--only", "memory,cold", "--quick", "--dir", "/mnt/disk"];
        assert_eq!(check_all(&flags), Ok(flags.map(str::to_owned).to_vec()));
        assert_eq!(check_all(&[]), Ok(Vec::new()));
    }

    #[test]
    fn a_folder_is_meant_from_where_the_command_was_typed() {
        let flags = check_all(&["--dir", "scratch"]).expect("valid");
        assert!(Path::new(&flags[1]).is_absolute(), "{flags:?}");
    }

    #[test]
    fn unknown_repeated_and_lonely_flags_are_refused() {
        assert_eq!(check_all(&["--fast"]), Err("bench-engine does not know `--fast`".to_owned()));
        assert_eq!(check_all(&["--check", "--check"]), Err("--check is given twice".to_owned()));
        assert_eq!(check_all(&["--only"]), Err("--only needs a value".to_owned()));
        assert_eq!(check_all(&["--dir", "--check"]), Err("--dir needs a value".to_owned()));
    }
}
