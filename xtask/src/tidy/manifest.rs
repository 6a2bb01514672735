//! Every crate takes the workspace's lints and licence, and says what it is.

use super::Finding;
use super::cargo_toml::{Crate, crates};
use super::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    crates(tree).iter().flat_map(check_crate).collect()
}

/// A crate without the lints line escapes every lint, and nothing else would notice.
fn check_crate(member: &Crate) -> Vec<Finding> {
    let value = |key: &[&str]| member.manifest.value(key);
    let finding = |line, message: &str| Finding::new(&member.manifest_path, line, message);
    let mut findings = Vec::new();
    if value(&["lints", "workspace"]) != Some("true") {
        findings.push(finding(1, "`[lints] workspace = true` is missing"));
    }
    if value(&["package", "license", "workspace"]) != Some("true") {
        findings.push(finding(
            member.manifest.line(&["package", "license"]),
            "`license.workspace = true` is missing",
        ));
    }
    if value(&["package", "description"]).is_none_or(|text| text.trim().is_empty()) {
        findings.push(finding(member.manifest.line(&["package", "description"]), "`description` is missing"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(manifest: &str) -> Vec<String> {
        let tree = Tree::of(&[("crates/core/Cargo.toml", manifest)]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_complete_manifest_is_fine() {
        let package = "[package]\ndescription = \"The domain.\"\nlicense.workspace = true\n";
        assert!(findings(&format!("{package}[lints]\nworkspace = true\n")).is_empty());
        assert!(findings(&format!("lints = {{ workspace = true }}\n{package}")).is_empty());
    }

    #[test]
    fn everything_that_is_missing_is_found() {
        assert_eq!(
            findings("[package]\nname = \"redrive-core\"\n"),
            [
                "crates/core/Cargo.toml:1: `[lints] workspace = true` is missing",
                "crates/core/Cargo.toml:1: `license.workspace = true` is missing",
                "crates/core/Cargo.toml:1: `description` is missing",
            ],
        );
    }

    #[test]
    fn a_value_of_its_own_is_not_the_workspaces() {
        let manifest = "[package]\ndescription = \" \"\nlicense = \"MIT\"\n[lints]\nworkspace = false\n";
        assert_eq!(
            findings(manifest),
            [
                "crates/core/Cargo.toml:1: `[lints] workspace = true` is missing",
                "crates/core/Cargo.toml:3: `license.workspace = true` is missing",
                "crates/core/Cargo.toml:2: `description` is missing",
            ],
        );
    }
}
