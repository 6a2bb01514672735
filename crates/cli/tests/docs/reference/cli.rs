//! `docs/reference/cli.md`: what every command says about itself, from the root of the tree to its leaves.

use std::path::Path;
use std::process::Command;

use super::add;

const INTRODUCTION: &str = "\
# The command line

Made from what each command says with `--help`, by a test; do not edit. `REDRIVE_BLESS=1` writes it.

* Standard output is data, standard error is talk. `-o json`, `ndjson`, `yaml` and `id` are for programs, and `--json` is `-o json`.
* Spans are written as `250ms`, `1.5s`, `30s`, `5m`, `12h`, `7d`.
* What destroys something shows how many first and asks; without a terminal it needs `--yes`. `--dry-run` only counts.

| exit code | |
|---|---|
| 0 | done |
| 1 | it failed |
| 2 | the command line is wrong, or `--yes` is missing |
| 3 | there is no such thing |
| 4 | not in that state: a conflict, a lost lease, a duplicate |
| 5 | not allowed |
| 6 | no server answers |
| 7 | some of many failed |
| 8 | nothing came in the time that it may wait |
| 130 | interrupted |
";

pub(crate) fn make(_root: &Path) -> Result<String, String> {
    let mut text = INTRODUCTION.to_owned();
    describe(&[], &mut text)?;
    Ok(text)
}

/// A command, and all below it.
fn describe(path: &[String], text: &mut String) -> Result<(), String> {
    let help = help(path)?;
    let name = [&["redrive".to_owned()], path].concat().join(" ");
    let level = "#".repeat(path.len().max(1) + 1);
    add(text, &format!("\n{level} {name}\n\n```text\n{}\n```\n", help.trim_end()));
    for command in commands(&help) {
        describe(&[path, &[command]].concat(), text)?;
    }
    Ok(())
}

fn help(path: &[String]) -> Result<String, String> {
    let run = Command::new(env!("CARGO_BIN_EXE_redrive")).args(path).arg("--help").env_clear().output();
    let output = run.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("{path:?}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let text = String::from_utf8(output.stdout).map_err(|error| error.to_string())?;
    Ok(text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect())
}

/// The names below `Commands:`; `help` describes nothing new.
fn commands(help: &str) -> Vec<String> {
    let below =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = below.filter_map(|line| {
        let entry = line.strip_prefix("  ")?;
        let name = entry.split_whitespace().next().filter(|_| !entry.starts_with(' '))?;
        (name != "help").then(|| name.to_owned())
    });
    names.collect()
}
