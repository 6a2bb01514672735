//! What the compiler and clippy cannot see about this repository.
//!
//! A check is a pure function from the [`Tree`] to its [`Finding`]s, one file each, with tests that show it can fail.
//! [`cargo_toml`], [`markdown`] and [`rust_source`] read the three languages as far as the checks need them.

mod cargo_toml;
mod layers;
mod links;
mod manifest;
mod markdown;
mod modules;
mod purity;
mod readme;
mod root;
mod rust_source;
mod sources;
mod tree;
mod verbs;

use std::fmt;
use std::path::Path;

use crate::command::Failure;
use tree::Tree;

/// Something that is not as it should be, at a place that an editor can jump to.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    /// From 1; it is 1 as well where the file as a whole is meant, or one that is missing.
    line: usize,
    message: String,
}

impl Finding {
    fn new(path: impl Into<String>, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.into(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

const CHECKS: [fn(&Tree) -> Vec<Finding>; 9] = [
    layers::check,
    purity::check,
    sources::check,
    modules::check,
    links::check,
    manifest::check,
    verbs::check,
    readme::check,
    root::check,
];

/// Prints every finding, not only the first check's: they are cheap to find and quicker to mend together.
pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    let tree = Tree::read(root)?;
    let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(&tree)).collect();
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => {
            println!("tidy: {} checks, {} files, no findings", CHECKS.len(), tree.len());
            Ok(())
        }
        findings => Err(Failure::Untidy { findings }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_a_place_and_a_message() {
        let finding = Finding::new("crates/core/src/lib.rs", 7, "a tab");
        assert_eq!(finding.to_string(), "crates/core/src/lib.rs:7: a tab");
    }
}
