//! `cargo xtask deb`: the Debian package, with what the binary says about itself: man pages and completions.
//!
//! Which file goes where is in `crates/cli/Cargo.toml`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Exit;
use crate::command::{self, Failure, cargo};

/// The shells that Debian has a folder for, and what completions are called there.
const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "redrive.bash"), ("zsh", "_redrive"), ("fish", "redrive.fish")];

pub(crate) fn run(root: &Path, flags: &[String]) -> Result<(), Exit> {
    let profile = profile(flags).map_err(Exit::Usage)?;
    if !command::has_subcommand(root, "deb") {
        let remedy = "cargo install cargo-deb --locked";
        return Err(Failure::NotInstalled { tool: "cargo-deb", remedy }.into());
    }
    command::run(cargo(root, &["build", "--locked", "--bin", "redrive", "--profile", profile]))?;
    describe(&built(root, profile))?;
    let package = ["deb", "--package", "redrive-cli", "--no-build", "--profile", profile];
    Ok(command::run(cargo(root, &package))?)
}

fn profile(flags: &[String]) -> Result<&str, String> {
    match flags {
        [] => Ok("release"),
        [flag, profile] if flag == "--profile" && !profile.starts_with("--") => Ok(profile),
        [flag] if flag == "--profile" => Err("--profile needs a name".to_owned()),
        [flag, ..] => Err(format!("deb does not know `{flag}`")),
    }
}

/// The folder of what was built.
fn built(root: &Path, profile: &str) -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
    target.join(if profile == "dev" { "debug" } else { profile })
}

/// Has the binary write its man pages and completions.
fn describe(built: &Path) -> Result<(), Failure> {
    let package = built.join("package");
    let man = package.join("man");
    std::fs::create_dir_all(&man).map_err(|cause| unwritable(&man, cause))?;
    let redrive = |arguments: &[&str]| {
        let mut command = Command::new(built.join("redrive"));
        command.args(arguments);
        command
    };
    command::run(redrive(&["man", "--dir", &man.to_string_lossy()]))?;
    for (shell, file) in COMPLETIONS {
        let path = package.join(file);
        let script = command::output(redrive(&["completion", shell]))?;
        std::fs::write(&path, script).map_err(|cause| unwritable(&path, cause))?;
    }
    Ok(())
}

fn unwritable(path: &Path, cause: std::io::Error) -> Failure {
    Failure::Unreadable { path: path.display().to_string(), cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_may_be_named_and_nothing_else() {
        let of = |words: &[&str]| {
            profile(&words.iter().map(ToString::to_string).collect::<Vec<_>>()).map(str::to_owned)
        };
        assert_eq!(of(&[]), Ok("release".to_owned()));
        assert_eq!(of(&["--profile", "dev"]), Ok("dev".to_owned()));
        assert_eq!(of(&["--profile"]), Err("--profile needs a name".to_owned()));
        assert_eq!(of(&["--fast"]), Err("deb does not know `--fast`".to_owned()));
    }
}
