//! `cargo xtask bench-bus`: what publishing costs beside plain enqueues, and how fast an event finds its subscriptions.

use std::path::Path;

use crate::Exit;
use crate::command::{self, cargo};

pub(crate) fn run(root: &Path, flags: &[String]) -> Result<(), Exit> {
    if let Some(unknown) = flags.iter().find(|flag| *flag != "--check") {
        return Err(Exit::Usage(format!("bench-bus does not know `{unknown}`")));
    }
    let mut command =
        cargo(root, &["bench", "--quiet", "--locked", "-p", "redrive-bus", "--bench", "bus", "--"]);
    command.args(flags);
    Ok(command::run(command)?)
}
