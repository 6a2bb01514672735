//! `cargo xtask deb`: the Debian package, with what the binary says about itself: man pages and completions.
//!
//! Which file goes where is in `crates/cli/Cargo.toml`.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::Exit;
use crate::command::{self, Failure, cargo};

/// The shells that Debian has a folder for, and what completions are called there.
const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "redrive.bash"), ("zsh", "_redrive"), ("fish", "redrive.fish")];

pub(crate) fn run(root: &Path, flags: &[String]) -> Result<(), Exit> {
    if let Some(flag) = flags.first() {
        return Err(Exit::Usage(format!("deb takes no arguments, but got `{flag}`")));
    }
    if !command::has_subcommand(root, "deb") {
        let remedy = "cargo install cargo-deb --locked";
        return Err(Failure::NotInstalled { tool: "cargo-deb", remedy }.into());
    }
    command::run(cargo(root, &["build", "--release", "--locked", "--bin", "redrive"]))?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
    describe(&target.join("release"))?;
    Ok(command::run(cargo(root, &["deb", "--package", "redrive-cli", "--no-build"]))?)
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
