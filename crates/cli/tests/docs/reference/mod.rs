//! The reference: each page is made from the code, or compared with it.

mod cli;
pub(crate) mod configuration;
mod errors;
mod events;
mod grpc;
mod http;
pub(crate) mod metrics;

use std::path::Path;

use crate::Check;

/// Makes the text of a page.
type Make = fn(&Path) -> Result<String, String>;

/// The pages that are made.
pub(crate) const PAGES: [(&str, Make); 5] = [
    ("cli", cli::make),
    ("configuration", configuration::make),
    ("http", http::make),
    ("grpc", grpc::make),
    ("metrics", metrics::make),
];

/// The pages that are written by hand and compared.
pub(crate) const CHECKS: [(&str, Check); 2] =
    [("reference::errors", errors::check), ("reference::events", events::check)];

/// Holds a page of the reference against what the code says, or writes it.
pub(crate) fn hold(root: &Path, name: &str, make: Make, bless: bool) -> Result<(), String> {
    let path = root.join("docs/reference").join(format!("{name}.md"));
    let text = make(root)?;
    if bless {
        return std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()));
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let first = written.lines().zip(text.lines()).position(|(old, new)| old != new);
    if written == text {
        return Ok(());
    }
    let line = first.unwrap_or_else(|| written.lines().count().min(text.lines().count()));
    let at = |page: &str| page.lines().nth(line).unwrap_or("(nothing)").to_owned();
    Err(format!(
        "docs/reference/{name}.md:{}: it says\n    {}\nbut it should be\n    {}\nREDRIVE_BLESS=1 writes it",
        line + 1,
        at(&written),
        at(&text)
    ))
}

/// Goes on with a page.
fn add(page: &mut String, text: &str) {
    page.push_str(text);
}
