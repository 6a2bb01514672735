//! `docs/reference/cli.md`: what every command says about itself, from the root of the tree to its leaves.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::add;

const INTRODUCTION: &str = "\
# The command line

Made from what each command says with `-h`, by a test; do not edit. `REDRIVE_BLESS=1` writes it. `redrive COMMAND --help` says more, and
`redrive help --all` all of it.

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

/// Flags that many commands have: they are told once.
const SHARED: [&str; 2] = ["Server:", "Output:"];

/// What is made so far.
#[derive(Default)]
struct Page {
    commands: String,
    /// The first text of each of them.
    shared: BTreeMap<&'static str, String>,
}

pub(crate) fn make(_root: &Path) -> Result<String, String> {
    let mut page = Page::default();
    page.describe(&[])?;
    let shared: Vec<&str> = page.shared.values().map(|text| text.trim_end()).collect();
    Ok(format!(
        "{INTRODUCTION}\n## Flags of many commands\n\n```text\n{}\n```\n{}",
        shared.join("\n\n"),
        page.commands
    ))
}

impl Page {
    /// A command, and all below it.
    fn describe(&mut self, path: &[String]) -> Result<(), String> {
        let help = help(path)?;
        let name = [&["redrive".to_owned()], path].concat().join(" ");
        let level = "#".repeat(path.len().max(1) + 1);
        let own = self.own(&help);
        add(&mut self.commands, &format!("\n{level} {name}\n\n```text\n{}\n```\n", own.trim_end()));
        for command in commands(&help) {
            self.describe(&[path, &[command]].concat())?;
        }
        Ok(())
    }

    /// What the command says of itself, without what others say in the same words.
    fn own(&mut self, help: &str) -> String {
        let own = help.split("\n\n").filter(|part| {
            let title = SHARED.into_iter().find(|title| part.lines().next() == Some(title));
            let Some(title) = title else { return true };
            let first = self.shared.entry(title).or_insert_with(|| (*part).to_owned());
            first.trim_end() != part.trim_end()
        });
        own.collect::<Vec<_>>().join("\n\n")
    }
}

fn help(path: &[String]) -> Result<String, String> {
    let run = Command::new(env!("CARGO_BIN_EXE_redrive")).args(path).arg("-h").env_clear().output();
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
