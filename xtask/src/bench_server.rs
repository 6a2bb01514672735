//! `cargo xtask bench-postgres` and `bench-redis`: how fast the stores on servers are, each beside a bare loop on the same server.
//!
//! The flags belong to the bench that does the work and reach it as they were typed. They are checked here first,
//! because a typing error should not show only after a release build; the names of groups are the bench's own.

use std::path::Path;

use crate::Exit;
use crate::bench_engine::value;
use crate::command::{self, cargo};

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    Postgres,
    Redis,
}

impl Server {
    /// The name of the command, the crate of the store, and its bench.
    const fn names(self) -> [&'static str; 3] {
        match self {
            Self::Postgres => ["bench-postgres", "redrive-store-postgres", "postgres"],
            Self::Redis => ["bench-redis", "redrive-store-redis", "redis"],
        }
    }
}

pub(crate) fn run(root: &Path, server: Server, flags: &[String]) -> Result<(), Exit> {
    let flags = checked(server, flags).map_err(Exit::Usage)?;
    let [_, store, bench] = server.names();
    let mut command = cargo(root, &["bench", "--quiet", "--locked", "-p", store, "--bench", bench, "--"]);
    command.args(flags);
    Ok(command::run(command)?)
}

/// The flags for the bench, each known, with its value where it has one.
fn checked(server: Server, flags: &[String]) -> Result<Vec<String>, String> {
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
            "--messages" if server == Server::Postgres => {
                let messages = value(flag, words.next())?;
                let is_number = messages.parse::<u64>().is_ok_and(|messages| messages > 0);
                passed.push(is_number.then_some(messages).ok_or("--messages needs a number")?);
            }
            _ => {
                let [name, ..] = server.names();
                return Err(format!("{name} does not know `{flag}`"));
            }
        }
    }
    Ok(passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_all(words: &[&str]) -> Result<Vec<String>, String> {
        let flags: Vec<String> = words.iter().map(ToString::to_string).collect();
        checked(Server::Postgres, &flags)
    }

    #[test]
    fn a_flag_belongs_to_its_bench() {
        let flags = ["--messages".to_owned(), "20".to_owned()];
        assert_eq!(checked(Server::Redis, &flags), Err("bench-redis does not know `--messages`".to_owned()));
    }

    #[test]
    fn flags_pass_as_they_were_typed() {
        let flags = ["--check", "--only", "batches,pinned", "--messages", "20000", "--quick"];
        assert_eq!(check_all(&flags), Ok(flags.map(str::to_owned).to_vec()));
        assert_eq!(check_all(&[]), Ok(Vec::new()));
    }

    #[test]
    fn unknown_repeated_lonely_and_wrong_flags_are_refused() {
        assert_eq!(check_all(&["--fast"]), Err("bench-postgres does not know `--fast`".to_owned()));
        assert_eq!(check_all(&["--check", "--check"]), Err("--check is given twice".to_owned()));
        assert_eq!(check_all(&["--only"]), Err("--only needs a value".to_owned()));
        assert_eq!(check_all(&["--messages", "many"]), Err("--messages needs a number".to_owned()));
    }
}
