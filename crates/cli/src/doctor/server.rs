//! The server that other commands would ask: whether it answers, can work, has our version and our time.

use std::time::Duration;

use redrive_core::time::Timestamp;
use redrive_store_embedded::{Clock as _, MachineClock};
use redrive_wire::{QueuePage, QueueStats};
use reqwest::Method;
use serde::Deserialize;

use super::finding::Finding;
use crate::remote::{ConnectionArguments, Failure, Query, Remote};
use crate::span::Span;

/// How far two clocks may lie apart before somebody should know, in milliseconds.
const SKEW_MAX: u64 = 2_000;

/// How long an answer may take: whoever is asked may be no server at all.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a server says about itself.
#[derive(Debug, Deserialize)]
struct Description {
    info: Info,
}

#[derive(Debug, Deserialize)]
struct Info {
    title: String,
    version: String,
}

/// The version of the server, which must be a Redrive.
pub(super) async fn version(remote: &Remote) -> Result<String, Failure> {
    let request = remote.request(Method::GET, &["openapi.json"], &Query::new()).timeout(PATIENCE);
    let said = remote.answer::<Description>(request).await?.value.info;
    if said.title == "Redrive" {
        return Ok(said.version);
    }
    Err(Failure::Failed(format!("it is `{}`", said.title)))
}

pub(super) async fn check(connection: &ConnectionArguments) -> Vec<Finding> {
    let resolved = connection.resolve().and_then(|resolved| Remote::new(&resolved));
    let remote = match resolved {
        Ok(remote) => remote,
        Err(failure) => return vec![Finding::fail("server", failure.to_string())],
    };
    let url = remote.base().to_string();
    match version(&remote).await {
        Ok(version) => {
            let mut findings = vec![Finding::ok("server", format!("a redrive answers at {url}"))];
            findings.push(versions(&version, env!("CARGO_PKG_VERSION")));
            findings.push(ready(&remote).await);
            findings.extend(clock(&remote).await);
            findings
        }
        // Most who ask this have not started one yet.
        Err(Failure::Unreachable { .. }) if !connection.is_said() => {
            vec![Finding::ok("server", format!("none answers at {url}"))]
        }
        Err(failure) => vec![Finding::fail("server", failure.to_string())],
    }
}

fn versions(server: &str, ours: &str) -> Finding {
    let said = format!("the server has {server}, this program {ours}");
    Finding::warn_if(server != ours, "version", said)
}

async fn ready(remote: &Remote) -> Finding {
    let request = remote.request(Method::GET, &["readyz"], &Query::new()).timeout(PATIENCE);
    let asked = remote.response(request).await;
    match asked {
        Err(failure) => Finding::fail("ready", failure.to_string()),
        Ok(response) => {
            let said = response.text().await.unwrap_or_default();
            Finding::ok("ready", said.lines().skip(1).collect::<Vec<&str>>().join(", "))
        }
    }
}

/// The time of the store, where there is a queue that we may look at: it is what decides, and not the wall clock of
/// the server.
async fn clock(remote: &Remote) -> Option<Finding> {
    let first = vec![("limit", "1".to_owned())];
    let page = remote.get::<QueuePage>(&["v1", "queues"], &first).await.ok()?.value;
    let queue = page.queues.first()?;
    let path = ["v1", "queues", queue.name.as_str(), "stats"];
    let before = MachineClock.wall();
    let stats = remote.get::<QueueStats>(&path, &Query::new()).await.ok()?.value;
    // It was asked somewhere between.
    let between = before.plus(redrive_core::time::Millis::new(MachineClock.wall().since(before).get() / 2));
    Some(skew("server clock", Timestamp::from_millis(stats.at.0), between))
}

/// How far another clock is from the wall clock of this machine.
pub(super) fn skew(name: &'static str, theirs: Timestamp, ours: Timestamp) -> Finding {
    let apart = theirs.as_millis().abs_diff(ours.as_millis());
    let side = if theirs >= ours { "ahead of" } else { "behind" };
    let said = format!("{} {side} this machine's wall clock", Span::from_millis(apart));
    Finding::warn_if(apart > SKEW_MAX, name, said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    #[test]
    fn clocks_and_versions_that_differ_are_told() {
        let at = Timestamp::from_millis;
        assert_eq!(skew("a", at(10_000), at(9_000)).sentence, "1s ahead of this machine's wall clock");
        assert_eq!(skew("a", at(10_000), at(15_000)).level, Level::Warn);
        assert_eq!(versions("0.1.0", "0.1.0").level, Level::Ok);
        assert_eq!(versions("0.2.0", "0.1.0").level, Level::Warn);
    }
}
