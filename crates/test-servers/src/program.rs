//! Programs that run to their end.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Failure;

/// Runs a program and answers what it printed. What it read and said is nobody's business unless it fails.
pub(crate) fn run(mut command: Command) -> Result<String, Failure> {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let program = program.to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(Failure::refused(program.as_str()))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if output.status.success() {
        return Ok(printed.into_owned());
    }
    let said = format!("{printed}{}", String::from_utf8_lossy(&output.stderr));
    Err(Failure::Exited { program, status: output.status, said })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_tells_what_was_said() {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "echo one; echo two >&2; exit 3"]);
        let failure = run(shell).unwrap_err().to_string();
        assert_eq!(failure, "sh ended with exit status: 3:\none\ntwo\n");
    }
}
