//! Nothing points upwards: which crate may depend on which.

use super::Finding;
use super::cargo_toml::{Crate, Dependency, Kind, Manifest, crates};
use super::tree::Tree;

/// Every crate with the crates of ours that it may use, lowest first: a row only names rows above it.
const LAYERS: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("store", &["core"]),
    ("store-memory", &["store", "core"]),
    ("store-conformance", &["store-memory", "store", "core"]),
    ("store-embedded", &["store", "core"]),
    ("store-shared", &["store", "core"]),
    ("store-postgres", &["store-shared", "store", "core"]),
    ("store-redis", &["store-shared", "store", "core"]),
    ("broker", &["store", "core"]),
    ("bus", &["broker", "store", "core"]),
    ("wire", &[]),
    ("server", &["bus", "broker", "store", "core", "wire"]),
    ("client", &["wire"]),
    (
        "redrive",
        &[
            "client",
            "bus",
            "broker",
            "store",
            "store-memory",
            "store-embedded",
            "store-postgres",
            "store-redis",
            "core",
        ],
    ),
    (
        "cli",
        &[
            "redrive",
            "client",
            "server",
            "wire",
            "bus",
            "broker",
            "store-redis",
            "store-postgres",
            "store-embedded",
            "store-conformance",
            "store-memory",
            "store",
            "core",
        ],
    ),
    ("fuzz", &["cli", "server", "wire", "bus", "broker", "store-embedded", "store-memory", "store", "core"]),
    // Tests start servers by it, and no server of ours is among them.
    ("test-servers", &[]),
    ("xtask", &[]),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let workspace = Manifest::parse(tree.text("Cargo.toml").unwrap_or_default());
    crates(tree).iter().flat_map(|member| check_crate(member, &workspace)).collect()
}

fn check_crate(member: &Crate, workspace: &Manifest) -> Vec<Finding> {
    let mut findings: Vec<Finding> = misnamed(member).into_iter().collect();
    match allowed(&member.folder) {
        Some(allowed) => {
            let dependencies = member.manifest.dependencies(workspace);
            findings.extend(dependencies.iter().filter_map(|used| check_dependency(member, used, allowed)));
        }
        None => findings.push(Finding::new(
            &member.manifest_path,
            1,
            format!(
                "`{}` has no place in the layers: add it to LAYERS in xtask/src/tidy/layers.rs",
                member.folder
            ),
        )),
    }
    findings
}

fn misnamed(member: &Crate) -> Option<Finding> {
    const NAME: [&str; 2] = ["package", "name"];
    let expected = package_of(&member.folder);
    let name = member.manifest.value(&NAME).unwrap_or_default();
    (name != expected).then(|| {
        let message = format!("the crate in this folder is called `{expected}`, not `{name}`");
        Finding::new(&member.manifest_path, member.manifest.line(&NAME), message)
    })
}

/// Tests may look upwards (a store's tests use the suite above it), except for the core's: it stands alone.
fn check_dependency(member: &Crate, used: &Dependency, allowed: &[&str]) -> Option<Finding> {
    let folder = folder_of(&used.package)?;
    let exempt = used.kind == Kind::Dev && member.folder != "core";
    if exempt || allowed.contains(&folder) {
        return None;
    }
    let message = format!("`{}` may not depend on `{folder}`; it may use {}", member.folder, listed(allowed));
    Some(Finding::new(&member.manifest_path, used.line, message))
}

fn allowed(folder: &str) -> Option<&'static [&'static str]> {
    LAYERS.iter().find(|(name, _)| *name == folder).map(|(_, allowed)| *allowed)
}

fn package_of(folder: &str) -> String {
    match folder {
        "redrive" | "xtask" => folder.to_owned(),
        _ => format!("redrive-{folder}"),
    }
}

/// The folder of a crate of ours; `None` for everybody else's.
fn folder_of(package: &str) -> Option<&str> {
    match package {
        "redrive" | "xtask" => Some(package),
        _ => package.strip_prefix("redrive-"),
    }
}

fn listed(allowed: &[&str]) -> String {
    if allowed.is_empty() { "no crate of the workspace".to_owned() } else { allowed.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(folder: &str, manifest: &str) -> Vec<String> {
        let path = if folder == "xtask" {
            "xtask/Cargo.toml".to_owned()
        } else {
            format!("crates/{folder}/Cargo.toml")
        };
        let manifest = format!("[package]\nname = \"{}\"\n{manifest}", package_of(folder));
        let tree = Tree::of(&[("Cargo.toml", "[workspace]\n"), (&path, &manifest)]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_table_itself_points_downwards() {
        for (row, (name, allowed)) in LAYERS.iter().enumerate() {
            for used in *allowed {
                let known = LAYERS[..row].iter().any(|(lower, _)| lower == used);
                assert!(known, "`{name}` names `{used}`, which is not above it in the table");
            }
        }
    }

    #[test]
    fn a_dependency_downwards_is_fine() {
        assert!(
            findings("store", "[dependencies]\nredrive-core.workspace = true\nbytes = \"1\"\n").is_empty()
        );
    }

    #[test]
    fn a_dependency_upwards_is_found() {
        assert_eq!(
            findings("core", "[dependencies]\nredrive-store.workspace = true\n"),
            [
                "crates/core/Cargo.toml:4: `core` may not depend on `store`; it may use no crate of the workspace"
            ],
        );
        assert_eq!(findings("wire", "[dependencies]\nredrive-core.workspace = true\n").len(), 1);
        assert_eq!(findings("broker", "[build-dependencies]\nredrive-bus.workspace = true\n").len(), 1);
        assert_eq!(findings("client", "[dependencies]\nredrive = { path = \"../redrive\" }\n").len(), 1);
        assert_eq!(
            findings("xtask", "[target.'cfg(unix)'.dependencies]\nredrive-core.workspace = true\n").len(),
            1
        );
    }

    #[test]
    fn another_name_hides_nothing() {
        let manifest = "[dependencies]\nport = { path = \"../store\", package = \"redrive-store\" }\n";
        assert_eq!(findings("core", manifest).len(), 1);
    }

    #[test]
    fn tests_may_look_upwards_but_not_those_of_the_core() {
        let manifest = "[dev-dependencies]\nredrive-store-conformance.workspace = true\n";
        assert!(findings("store-memory", manifest).is_empty());
        assert_eq!(findings("core", manifest).len(), 1);
    }

    #[test]
    fn a_crate_without_a_place_is_found() {
        assert!(findings("utils", "")[0].contains("`utils` has no place in the layers"));
    }

    #[test]
    fn a_crate_is_named_after_its_folder() {
        let tree = Tree::of(&[("crates/store/Cargo.toml", "[package]\nname = \"redrive-port\"\n")]);
        let message = "the crate in this folder is called `redrive-store`, not `redrive-port`";
        assert_eq!(check(&tree), [Finding::new("crates/store/Cargo.toml", 2, message)]);
    }
}
