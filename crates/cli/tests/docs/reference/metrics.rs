//! `docs/reference/metrics.md`, from what a server answers that was made to count everything once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::add;
use crate::server::Server;
use crate::shell::Shell;

const INTRODUCTION: &str = "\
# Metrics

Made from `GET /metrics` of a real server by a test; do not edit. `REDRIVE_BLESS=1` writes it.

Labels are bounded: the first 1,000 queues, message types and subscriptions have their own, the rest is counted as `other`, and a
queue or a subscription that is deleted gives its labels up. Counters start at 0 with the server; `redrive_messages` and `redrive_oldest_ready_age_seconds` are read
from the store when Prometheus asks, and `redrive_breaker_state` is how the server sees it then. With several servers on one database, counters are each server's own and add up, while those
two are the same at each of them: take the `max`.

| name | kind | labels | |
|---|---|---|---|
";

/// Does everything once that is counted: in, out, over and over, given up, refused.
const SCENE: &str = r#"
post() { curl -sS --fail-with-body -H "Authorization: Bearer $REDRIVE_TOKEN" --json "$2" "$REDRIVE_URL$1"; }
metrics() { curl -sS --fail-with-body -H "Authorization: Bearer $REDRIVE_TOKEN" "$REDRIVE_URL/metrics"; }
receipt() { post /v1/queues/orders/lease "$1" | sed 's/.*"receipt":"\([^"]*\)".*/\1/'; }
set -e
post /v1/queues '{"name": "orders", "config": {"breaker": {}, "retry": {"max_attempts": 2, "base_delay_ms": 0}}}'
for order in 1 2 3 4; do post /v1/queues/orders/messages '{"body": "x", "type": "order.paid", "dedup_key": "'$order'"}'; done
post /v1/queues/orders/messages '{"body": "x", "dedup_key": "1"}'
held=$(receipt '{"consumer": "a"}')
post /v1/leases/extend '{"receipt": "'$held'"}'
post /v1/leases/release '{"receipt": "'$held'"}'
post /v1/leases/nack '{"receipt": "'$(receipt '{"consumer": "a"}')'", "error": "no"}'
for time in 1 2 3; do post /v1/leases/ack '{"receipt": "'$(receipt '{"consumer": "a"}')'"}'; done
post /v1/leases/ack '{"receipt": "'$(receipt '{"consumer": "a", "lane": "retry"}')'"}'
post /v1/queues/orders/messages '{"body": "x", "type": "order.paid"}'
post /v1/leases/bury '{"receipt": "'$(receipt '{"consumer": "a"}')'", "error": "never"}'
post /v1/queues/orders/messages '{"body": "x"}'
receipt '{"consumer": "a", "lease_ms": 1}'
until metrics | grep -q '^redrive_lease_expired_total.* 1$'; do :; done
post /v1/queues/orders/breaker/trip '{}'
curl -sS -H "Authorization: Bearer nobody" "$REDRIVE_URL/v1/queues"
curl -sS --fail-with-body -X PUT -H "Authorization: Bearer $REDRIVE_TOKEN" --json '{"dispatch": "sequential"}' "$REDRIVE_URL/v1/topics/orders.*"
post /v1/subscriptions '{"id": "mail", "pattern": "orders.*", "target": {"kind": "queue", "queue": "orders"}}'
post /v1/topics/orders.paid/events '{"events": [{"body": "x"}]}'
until metrics | grep -q '^redrive_delivery_attempts_total.* 1$'; do :; done
metrics > metrics.txt
"#;

/// One family of metrics.
#[derive(Debug, Default)]
pub(crate) struct Family {
    pub(crate) kind: String,
    pub(crate) about: String,
    pub(crate) labels: BTreeSet<String>,
}

pub(crate) fn make(_root: &Path) -> Result<String, String> {
    let mut page = INTRODUCTION.to_owned();
    for (name, family) in families()? {
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let about = family.about.trim_end_matches('.');
        add(&mut page, &format!("| `{name}` | {} | {} | {about} |\n", family.kind, labels.join(", ")));
    }
    Ok(page)
}

/// What a server tells, by the name that a query uses: counters with their `_total`.
pub(crate) fn families() -> Result<BTreeMap<String, Family>, String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let token = "REDRIVE_BOOTSTRAP_KEY";
    let key = generated_key()?;
    let server = Server::start_with(dir.path(), &[(token, key.clone())])?;
    let mut shell = Shell::start(dir.path(), &[("REDRIVE_URL", server.url.clone()), ("REDRIVE_TOKEN", key)])?;
    let played = shell.run(&format!("({SCENE})"))?;
    if played.code != 0 {
        return Err(format!("the scene ended with {}:\n{}", played.code, played.text));
    }
    let text = std::fs::read_to_string(dir.path().join("metrics.txt")).map_err(|error| error.to_string())?;
    Ok(parsed(&text))
}

fn generated_key() -> Result<String, String> {
    let made = std::process::Command::new(env!("CARGO_BIN_EXE_redrive")).args(["key", "generate"]).output();
    let made = made.map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&made.stdout).trim().to_owned())
}

fn parsed(text: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for line in text.lines() {
        if let Some((name, about)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            about.clone_into(&mut families.entry(name.to_owned()).or_default().about);
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            kind.clone_into(&mut families.entry(name.to_owned()).or_default().kind);
        } else if let Some((sample, labels)) = line.split_once('{') {
            let labels = labels.split('}').next().unwrap_or_default();
            let names = labels.split(',').filter_map(|label| Some(label.split_once('=')?.0.to_owned()));
            let of = families.iter_mut().filter(|(name, _)| sample.starts_with(name.as_str()));
            if let Some((_, family)) = of.max_by_key(|(name, _)| name.len()) {
                family.labels.extend(names.filter(|name| name != "le"));
            }
        }
    }
    let named = |(name, family): (String, Family)| {
        let total = if family.kind == "counter" { "_total" } else { "" };
        (format!("{name}{total}"), family)
    };
    families.into_iter().map(named).collect()
}
