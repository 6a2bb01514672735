//! `docs/reference/configuration.md`, from the file that `redrive config default` prints.

use std::path::Path;
use std::process::Command;

use super::add;

const INTRODUCTION: &str = "\
# Configuration

Made from `redrive config default` by a test; do not edit. `REDRIVE_BLESS=1` writes it.

A value comes from the defaults, from a file over them (`redrive.toml` in the current directory, or `--config FILE`), from the
environment over both, and from flags over all. `redrive config show --origin` says which value is in force and who said so,
`redrive config check FILE` whether a file is right. A wrong value stops the start with a message that names it.

The settings of a single queue are not here: they are kept with the queue, and `redrive queue set` changes them while it runs.

| in `redrive.toml` | default | environment, flag | |
|---|---|---|---|
";

/// What is no key of the file.
const REST: &str = "
`REDRIVE_BOOTSTRAP_KEY` holds the API key that may do everything; it is in no file and in no flag, where others could read it.

Commands that ask a server are configured by flags, by the environment (`REDRIVE_URL`, `REDRIVE_TOKEN`, `REDRIVE_CA`, `REDRIVE_CONTEXT`),
or by contexts in `~/.config/redrive/contexts.toml`, in this order:

```toml
current = \"prod\"

[contexts.prod]
url = \"https://queue.example.com:7400\"
token = \"…\"
ca = \"/etc/ssl/queue-ca.pem\"
```
";

pub(crate) fn make(_root: &Path) -> Result<String, String> {
    let file = default_file()?;
    let mut page = INTRODUCTION.to_owned();
    for key in file.split("\n\n").skip(1) {
        let (about, names, value) = parts(key).ok_or_else(|| format!("this is no key: {key}"))?;
        let (commented, value) = value.strip_prefix("# ").map_or((false, value), |value| (true, value));
        let (name, value) = value.split_once(" = ").ok_or_else(|| format!("this is no value: {value}"))?;
        let value = if commented { format!("none; such as `{value}`") } else { format!("`{value}`") };
        let names: Vec<String> = names.split(", ").map(|name| format!("`{name}`")).collect();
        add(&mut page, &format!("| `{name}` | {value} | {} | {about} |\n", names.join(", ")));
    }
    page.push_str(REST);
    Ok(page)
}

/// The file as the binary prints it.
pub(crate) fn default_file() -> Result<String, String> {
    let run = Command::new(env!("CARGO_BIN_EXE_redrive")).args(["config", "default"]).env_clear().output();
    let output = run.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}

/// What it is for, the names of its variables and its flag, and the line that sets it.
fn parts(key: &str) -> Option<(String, &str, &str)> {
    let lines: Vec<&str> = key.trim_end().lines().collect();
    let [about @ .., names, value] = lines.as_slice() else { return None };
    let about: Vec<&str> = about.iter().filter_map(|line| line.strip_prefix("# ")).collect();
    let names = names.strip_prefix("# ").filter(|names| names.starts_with("REDRIVE_"))?;
    Some((about.join(" "), names, value))
}
