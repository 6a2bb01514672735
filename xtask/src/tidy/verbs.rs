//! One file per verb, the same name in every layer: a person who knows the verb knows the files.

use super::Finding;
use super::tree::Tree;

/// The transitions that write something; `promote` follows from the record and the clock, so no layer has it.
const VERBS: [&str; 13] = [
    "enqueue",
    "lease",
    "extend",
    "ack",
    "nack",
    "release",
    "expire",
    "bury",
    "lapse",
    "reschedule",
    "move",
    "redrive",
    "discard",
];

/// The settles that are three lines in most stores, and the file that they may share there.
const TRIVIAL: [&str; 2] = ["ack", "bury"];
const SHARED: &str = "settle.rs";

const CORE: &str = "crates/core";
const RULES: &str = "crates/core/src/lifecycle";
const CONFORMANCE: &str = "crates/store-conformance";
const CONFORMANCE_RULES: &str = "crates/store-conformance/src/rules";

/// What stores on servers have in common: it carries verbs and knows none, so it owes no files.
const COMMON: &str = "crates/store-shared";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    if tree.has_folder(CORE) {
        findings.extend(missing(RULES, |verb| tree.has_file(&format!("{RULES}/{verb}.rs"))));
    }
    for folder in store_folders(tree) {
        findings.extend(missing(&folder, |verb| has_verb_below(tree, &folder, verb)));
    }
    findings
}

/// Where each backend and the conformance suite keep their verbs; a crate that does not exist yet owes none.
fn store_folders(tree: &Tree) -> Vec<String> {
    let manifests = tree.below("crates").filter_map(|(path, _)| path.strip_suffix("/Cargo.toml"));
    let stores = manifests.filter(|root| root.starts_with("crates/store-") && *root != COMMON);
    let verbs = |root: &str| {
        if root == CONFORMANCE { CONFORMANCE_RULES.to_owned() } else { format!("{root}/src") }
    };
    stores.map(verbs).collect()
}

fn missing(folder: &str, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let missing = VERBS.iter().filter(|verb| !exists(verb));
    missing
        .map(|verb| Finding::new(folder, 1, format!("no file `{verb}.rs`: each verb has one in every layer")))
        .collect()
}

fn has_verb_below(tree: &Tree, folder: &str, verb: &str) -> bool {
    let own = format!("/{verb}.rs");
    let shared = format!("/{SHARED}");
    tree.below(folder)
        .any(|(path, _)| path.ends_with(&own) || TRIVIAL.contains(&verb) && path.ends_with(&shared))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with these crates, each with a file for every verb.
    fn complete(folders: &[(&str, &str)]) -> Vec<String> {
        let verbs = |(root, folder): &(&str, &str)| {
            let manifest = format!("{root}/Cargo.toml");
            let files = VERBS.iter().map(|verb| format!("{folder}/{verb}.rs")).collect::<Vec<_>>();
            [vec![manifest], files].concat()
        };
        folders.iter().flat_map(verbs).collect()
    }

    fn findings(paths: &[String]) -> Vec<String> {
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "")).collect();
        check(&Tree::of(&files)).iter().map(ToString::to_string).collect()
    }

    fn layers() -> Vec<String> {
        complete(&[
            (CORE, RULES),
            ("crates/store-memory", "crates/store-memory/src/verbs"),
            (CONFORMANCE, CONFORMANCE_RULES),
        ])
    }

    #[test]
    fn a_complete_repository_is_fine() {
        assert!(findings(&layers()).is_empty());
    }

    #[test]
    fn crates_that_do_not_exist_owe_nothing() {
        assert!(findings(&["README.md".to_owned()]).is_empty());
    }

    #[test]
    fn only_what_stores_share_owes_nothing_of_what_begins_like_a_store() {
        let beside = |root: &str| findings(&[layers(), vec![format!("{root}/Cargo.toml")]].concat()).len();
        assert_eq!(beside(COMMON), 0);
        assert_eq!(beside("crates/store-another"), VERBS.len());
    }

    #[test]
    fn every_missing_file_is_found() {
        for path in layers() {
            let Some((folder, verb)) = path.rsplit_once('/').filter(|(_, file)| *file != "Cargo.toml") else {
                continue;
            };
            let folder = folder.trim_end_matches("/verbs");
            let without: Vec<String> = layers().into_iter().filter(|other| *other != path).collect();
            let expected = format!("{folder}:1: no file `{verb}`: each verb has one in every layer");
            assert_eq!(findings(&without), [expected]);
        }
    }

    #[test]
    fn only_trivial_settles_may_share_a_file_and_only_in_stores() {
        let shared = |folder: &str, verbs: &[&str]| {
            let gone: Vec<String> = verbs.iter().map(|verb| format!("{folder}/{verb}.rs")).collect();
            let mut paths: Vec<String> = layers().into_iter().filter(|path| !gone.contains(path)).collect();
            paths.push(format!("{folder}/{SHARED}"));
            findings(&paths).len()
        };
        assert_eq!(shared("crates/store-memory/src/verbs", &["ack", "bury"]), 0);
        assert_eq!(shared(CONFORMANCE_RULES, &["ack", "bury"]), 0);
        assert_eq!(shared(CONFORMANCE_RULES, &["nack"]), 1);
        assert_eq!(shared(RULES, &["ack", "bury"]), 2);
    }
}
