//! What lies at the root is known: a file that a command left behind there is part of nothing.

use super::Finding;
use super::tree::Tree;

/// Everything that may lie there.
const KNOWN: [&str; 11] = [
    ".gitattributes",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "clippy.toml",
    "rustfmt.toml",
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let strangers = tree.at_root().filter(|path| !KNOWN.contains(path));
    strangers
        .map(|path| Finding::new(path, 1, "what is this? it lies at the root by mistake, or is not known"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_left_at_the_root_is_found() {
        let tree =
            Tree::of(&[("README.md", ""), ("received", ""), ("docs/status", ""), ("web/package.json", "")]);
        let found: Vec<String> = check(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(found, ["received"]);
    }
}
