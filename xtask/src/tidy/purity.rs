//! The core stays pure: a few crates that compute, no I/O, no threads, no async, no clock.

use super::Finding;
use super::cargo_toml::{Kind, Manifest};
use super::rust_source::{RustSource, paths};
use super::tree::Tree;

const MANIFEST: &str = "crates/core/Cargo.toml";
const SOURCES: &str = "crates/core/src";

/// What the core may depend on; its tests may use what they like.
const CRATES: [&str; 7] = ["bytes", "data-encoding", "hmac", "sha2", "subtle", "thiserror", "uuid"];

/// What its sources may not mention, and what to do instead.
const IMPURE: [(&[&str], &str); 10] = [
    (&["std", "fs"], "the core does no I/O: that is a store's work"),
    (&["net", "TcpStream"], "the core does no I/O: that is the server's work"),
    (&["net", "TcpListener"], "the core does no I/O: that is the server's work"),
    (&["net", "UdpSocket"], "the core does no I/O: that is the server's work"),
    (&["net", "ToSocketAddrs"], "the core looks up no names: that is the server's work"),
    (&["std", "thread"], "the core starts no threads"),
    (&["std", "env"], "the core has no environment: settings are arguments"),
    (&["async"], "the core is not async: it only computes"),
    (&["SystemTime"], "time is an argument"),
    (&["Instant"], "time is an argument"),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = foreign_crates(tree);
    for (path, text) in tree.below(SOURCES) {
        findings.extend(impure_paths(path, text));
    }
    findings
}

/// Crates of our own are not looked at here: the layers allow the core none.
fn foreign_crates(tree: &Tree) -> Vec<Finding> {
    let manifest = Manifest::parse(tree.text(MANIFEST).unwrap_or_default());
    let workspace = Manifest::parse(tree.text("Cargo.toml").unwrap_or_default());
    let dependencies = manifest.dependencies(&workspace).into_iter();
    let foreign = dependencies.filter(|used| {
        used.kind != Kind::Dev
            && !used.package.starts_with("redrive")
            && !CRATES.contains(&used.package.as_str())
    });
    let message =
        |package: &str| format!("the core may not depend on `{package}`, only on {}", CRATES.join(", "));
    foreign.map(|used| Finding::new(MANIFEST, used.line, message(&used.package))).collect()
}

fn impure_paths(path: &str, text: &str) -> Vec<Finding> {
    let source = RustSource::parse(text);
    let mut findings = Vec::new();
    for mention in paths(&source.tokens()) {
        for (impure, instead) in IMPURE {
            if mention.segments.ends_with(impure) {
                findings.push(Finding::new(
                    path,
                    mention.line,
                    format!("`{}`: {instead}", impure.join("::")),
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_source(text: &str) -> Vec<Finding> {
        check(&Tree::of(&[("crates/core/src/lease.rs", text)]))
    }

    #[test]
    fn a_crate_that_is_not_on_the_list_is_found() {
        let manifest =
            "[dependencies]\nbytes.workspace = true\nserde = \"1\"\n[dev-dependencies]\nproptest = \"1\"\n";
        let message = "the core may not depend on `serde`, only on bytes, data-encoding, hmac, sha2, subtle, thiserror, uuid";
        assert_eq!(check(&Tree::of(&[(MANIFEST, manifest)])), [Finding::new(MANIFEST, 3, message)]);
    }

    #[test]
    fn every_impurity_is_found() {
        assert_eq!(
            in_source("use std::time::{Duration, Instant};\n"),
            [Finding::new("crates/core/src/lease.rs", 1, "`Instant`: time is an argument")],
        );
        for text in [
            "use std::fs;",
            "use std::{fmt, net::TcpStream};",
            "std::thread::spawn(f);",
            "let home = std::env::var(name);",
            "async fn f() {}",
            "let later = async move { 1 };",
            "std::time::SystemTime::now()",
        ] {
            assert_eq!(in_source(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn speaking_of_it_is_not_using_it() {
        assert!(
            in_source("//! No `std::fs`, no `Instant`.\nlet a = \"async fn\";\nlet b = Instantly;\n")
                .is_empty()
        );
    }

    #[test]
    fn other_crates_may_be_impure() {
        assert!(
            check(&Tree::of(&[("crates/store/src/lib.rs", "async fn f() {}\nuse std::fs;\n")])).is_empty()
        );
    }
}
