//! What is below `deploy/` names things that exist: metrics and their labels, sections of the runbook, settings, files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::Check;
use crate::reference::configuration::default_file;
use crate::reference::metrics::{Family, families};
use crate::server::Server;

pub(crate) const CHECKS: [(&str, Check); 6] = [
    ("deploy::what_no_server_tells_is_found", what_no_server_tells_is_found),
    ("deploy::metrics_exist", metrics_exist),
    ("deploy::every_alert_has_its_section", every_alert_has_its_section),
    ("deploy::the_unit_is_one", the_unit_is_one),
    ("deploy::the_settings_start_a_server", the_settings_start_a_server),
    ("deploy::the_package_has_its_files", the_package_has_its_files),
];

fn read(root: &Path, name: &str) -> Result<String, String> {
    std::fs::read_to_string(root.join(name)).map_err(|error| format!("{name}: {error}"))
}

/// Every metric that an alert or a panel asks for is told by a server, and so is every label.
fn metrics_exist(root: &Path) -> Result<(), String> {
    let known = families()?;
    let alerts = read(root, "deploy/alerts.yml")?;
    let mut asked: Vec<String> =
        alerts.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).map(str::to_owned).collect();
    let board: Value =
        serde_json::from_str(&read(root, "deploy/grafana.json")?).map_err(|error| error.to_string())?;
    for panel in board["panels"].as_array().into_iter().flatten() {
        let targets = panel["targets"].as_array().into_iter().flatten();
        asked.extend(targets.filter_map(|target| Some(target["expr"].as_str()?.to_owned())));
    }
    if asked.len() < 20 {
        return Err(format!("only {} questions were found", asked.len()));
    }
    let wrong: Vec<String> = asked.iter().flat_map(|expr| unknown(expr, &known)).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// The metrics and labels of a question that no server tells.
fn unknown(expr: &str, known: &BTreeMap<String, Family>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (start, _) in expr.match_indices("redrive_") {
        let rest = &expr[start..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let family = known.get(name).or_else(|| {
            let parts = ["_bucket", "_sum", "_count"].into_iter();
            parts
                .filter_map(|part| known.get(name.strip_suffix(part)?))
                .find(|family| family.kind == "histogram")
        });
        let Some(family) = family else {
            wrong.push(format!("{expr}: there is no metric {name}"));
            continue;
        };
        let selector = after.strip_prefix('{').and_then(|after| after.split('}').next()).unwrap_or_default();
        // Every second part stands in quotes.
        let outside = selector.split('"').step_by(2).flat_map(|part| part.split(','));
        let labels = outside.filter_map(|label| label.split(['=', '!']).next()).map(str::trim);
        let missing = labels.filter(|label| !label.is_empty() && !family.labels.contains(*label));
        wrong.extend(missing.map(|label| format!("{expr}: {name} has no label {label}")));
    }
    wrong
}

fn what_no_server_tells_is_found(_root: &Path) -> Result<(), String> {
    let family = |kind: &str| Family {
        kind: kind.to_owned(),
        labels: ["queue".to_owned()].into(),
        ..Family::default()
    };
    let known: BTreeMap<String, Family> = [
        ("redrive_run_seconds".to_owned(), family("histogram")),
        ("redrive_dead_total".to_owned(), family("counter")),
    ]
    .into();
    for (expr, wrong) in [
        ("sum by (queue) (increase(redrive_dead_total{queue=~\"a,b\"}[5m])) > 1", 0),
        ("rate(redrive_run_seconds_bucket{queue!=\"a\"}[5m])", 0),
        ("rate(redrive_dead[5m])", 1),
        ("rate(redrive_dead_total_bucket[5m]) / redrive_made_up", 2),
        ("redrive_dead_total{state=\"dead\"}", 1),
    ] {
        let found = unknown(expr, &known);
        if found.len() != wrong {
            return Err(format!("{expr}: {wrong} were expected, not {found:?}"));
        }
    }
    Ok(())
}

fn every_alert_has_its_section(root: &Path) -> Result<(), String> {
    let alerts = read(root, "deploy/alerts.yml")?;
    let values = |key: &str| -> Vec<String> {
        let lines = alerts.lines().map(|line| line.trim().trim_start_matches("- "));
        lines.filter_map(|line| line.strip_prefix(key)).map(str::to_owned).collect()
    };
    let (names, links) = (values("alert: "), values("runbook: "));
    let runbook = read(root, "docs/guides/runbook.md")?;
    let sections: BTreeSet<&str> = runbook.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let expected: Vec<String> =
        names.iter().map(|name| format!("docs/guides/runbook.md#{}", name.to_lowercase())).collect();
    if names.is_empty() || links != expected {
        return Err(format!("{names:?} lead to {links:?}"));
    }
    let without: Vec<&String> = names.iter().filter(|name| !sections.contains(name.as_str())).collect();
    let stale: Vec<&&str> = sections
        .iter()
        .filter(|name| name.starts_with("Redrive") && !names.contains(&(**name).to_owned()))
        .collect();
    if without.is_empty() && stale.is_empty() {
        return Ok(());
    }
    Err(format!("docs/guides/runbook.md: no section for {without:?}; no alert for {stale:?}"))
}

/// As systemd says where it is there, and as far as one sees without it.
fn the_unit_is_one(root: &Path) -> Result<(), String> {
    let unit = read(root, "deploy/redrive.service")?;
    let serve = "ExecStart=/usr/bin/redrive serve --config /etc/redrive/redrive.toml";
    if !unit.lines().any(|line| line == serve) {
        return Err(format!("there is no `{serve}`"));
    }
    let odd = unit.lines().find(|line| {
        !(line.is_empty()
            || line.starts_with(['#', '['])
            || line.split_once('=').is_some_and(|(key, _)| is_key(key)))
    });
    if let Some(line) = odd {
        return Err(format!("deploy/redrive.service: `{line}`"));
    }
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let copy = dir.path().join("redrive.service");
    // The package brings the binary and its manual; here is only the one that was built.
    let here = unit.replace("/usr/bin/redrive", env!("CARGO_BIN_EXE_redrive"));
    let here: String = here
        .lines()
        .filter(|line| !line.starts_with("Documentation="))
        .flat_map(|line| [line, "\n"])
        .collect();
    std::fs::write(&copy, here).map_err(|error| error.to_string())?;
    let Ok(verified) = Command::new("systemd-analyze").arg("verify").arg(&copy).output() else {
        return Ok(());
    };
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    let about_it: Vec<&str> = said.lines().filter(|line| line.contains("redrive.service")).collect();
    if about_it.is_empty() { Ok(()) } else { Err(about_it.join("\n")) }
}

fn is_key(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|c| c.is_ascii_alphanumeric())
}

/// The file of the package and the variables of the image are understood; only where they listen and write is changed.
fn the_settings_start_a_server(root: &Path) -> Result<(), String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = root.join("deploy/redrive.toml").display().to_string();
    std::fs::write(dir.path().join("redrive.toml"), read(root, "deploy/redrive.toml")?)
        .map_err(|error| error.to_string())?;
    drop(Server::start(dir.path()).map_err(|problem| format!("{file}: {problem}"))?);
    let container = read(root, "deploy/Containerfile")?;
    let variables: Vec<(&str, String)> = container
        .split_whitespace()
        .filter_map(|word| word.split_once('=').filter(|(name, _)| name.starts_with("REDRIVE_")))
        .map(|(name, value)| (name, value.to_owned()))
        .collect();
    if variables.len() < 3 {
        return Err(format!("deploy/Containerfile sets only {variables:?}"));
    }
    drop(
        Server::start_with(dir.path(), &variables)
            .map_err(|problem| format!("deploy/Containerfile: {problem}"))?,
    );
    let known = default_file()?;
    let strange = variables.iter().find(|(name, _)| !known.contains(&format!("# {name}")));
    strange.map_or(Ok(()), |(name, _)| Err(format!("deploy/Containerfile: nothing reads {name}")))
}

/// What the Debian package is made of: files of the repository are there, the others are made by `cargo xtask deb`.
fn the_package_has_its_files(root: &Path) -> Result<(), String> {
    let manifest: toml::Table =
        read(root, "crates/cli/Cargo.toml")?.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let assets = manifest
        .get("package")
        .and_then(|package| package.get("metadata")?.get("deb")?.get("assets")?.as_array())
        .ok_or("crates/cli/Cargo.toml: there is no package.metadata.deb.assets")?;
    let paths: Vec<&str> = assets.iter().filter_map(|asset| asset.get(0)?.as_str()).collect();
    let missing = paths
        .iter()
        .find(|path| !path.starts_with("target/release/") && !root.join("crates/cli").join(path).exists());
    match missing {
        Some(path) => Err(format!("crates/cli/Cargo.toml: there is no {path}")),
        None if paths.len() < 6 => Err(format!("only these were found: {paths:?}")),
        None => Ok(()),
    }
}
