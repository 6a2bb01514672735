//! `docs/reference/events.md` has every word of the events that the source has.

use std::collections::BTreeSet;
use std::path::Path;

use redrive_broker::{Act, Trigger};
use redrive_core::lifecycle::ARROWS;

pub(crate) fn check(root: &Path) -> Result<(), String> {
    let page =
        std::fs::read_to_string(root.join("docs/reference/events.md")).map_err(|error| error.to_string())?;
    let told: BTreeSet<&str> = page.split('`').skip(1).step_by(2).collect();
    let kinds = ARROWS.iter().filter_map(|arrow| arrow.event());
    let words: BTreeSet<&str> = kinds
        .chain(["breaker", "queue", "subscription", "lagged"])
        .chain(Act::ALL.map(Act::name))
        .chain(Trigger::ALL.map(Trigger::name))
        .collect();
    let missing: Vec<&&str> = words.difference(&told).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("docs/reference/events.md: not there: {missing:?}")) }
}
