//! No dead files: a source file that no module declares is not compiled, not tested and not seen by clippy.

use std::collections::BTreeSet;

use super::Finding;
use super::cargo_toml::{Crate, Manifest, crates};
use super::rust_source::RustSource;
use super::tree::{Tree, extension_of};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    crates(tree).iter().flat_map(|member| dead_files(tree, member)).collect()
}

fn dead_files(tree: &Tree, member: &Crate) -> Vec<Finding> {
    let root = member.manifest_path.trim_end_matches("/Cargo.toml");
    let is_root = |path: &str| is_target(&path[root.len() + 1..], &member.manifest);
    let src = format!("{root}/src");
    let files: Vec<(&str, &str)> =
        tree.below(&src).filter(|(path, _)| extension_of(path) == Some("rs")).collect();
    // A module that is declared by a dead file is not found, but the file that declares it is.
    let declared: BTreeSet<String> =
        files.iter().flat_map(|(path, text)| declared_files(path, text, is_root(path))).collect();
    let dead = files.iter().filter(|(path, _)| !is_root(path) && !declared.contains(*path));
    let message = |path| format!("dead file: no parent module declares `mod {};`", module_of(path));
    dead.map(|(path, _)| Finding::new(*path, 1, message(path))).collect()
}

/// Whether Cargo compiles the file by itself; `inside` is its path from the crate's root.
fn is_target(inside: &str, manifest: &Manifest) -> bool {
    let listed = ["lib", "bin"].iter().any(|target| manifest.has(&[target, "path"], inside));
    let binary =
        inside.strip_prefix("src/bin/").is_some_and(|name| !name.contains('/') || name.ends_with("/main.rs"));
    listed || binary || matches!(inside, "src/lib.rs" | "src/main.rs")
}

/// The two files that each `mod name;` of this file may stand for. The attribute that gives a module another path is
/// not understood, so that files keep the names of their modules.
fn declared_files(path: &str, text: &str, is_root: bool) -> Vec<String> {
    let folder = match path.rsplit_once('/') {
        Some((folder, file)) if is_root || file == "mod.rs" => folder,
        _ => path.trim_end_matches(".rs"),
    };
    let source = RustSource::parse(text);
    let tokens = source.tokens();
    let declarations = tokens.windows(3).filter(|window| window[0].text == "mod" && window[2].text == ";");
    let files = |name: &str| [format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")];
    declarations.flat_map(|window| files(window[1].text)).collect()
}

/// The name of a file's module: `a/b.rs` and `a/b/mod.rs` are both `b`.
fn module_of(path: &str) -> &str {
    let module = path.strip_suffix("/mod.rs").or_else(|| path.strip_suffix(".rs")).unwrap_or(path);
    module.rsplit_once('/').map_or(module, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let mut files = files.to_vec();
        files.push((
            "crates/core/Cargo.toml",
            "[[bin]]\npath = \"src/main.rs\"\n[[bin]]\npath = \"src/tool.rs\"\n",
        ));
        check(&Tree::of(&files)).into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn declared_modules_are_alive() {
        let files = [
            ("crates/core/src/lib.rs", "mod a;\npub(crate) mod lifecycle;\n"),
            ("crates/core/src/a.rs", "#[cfg(test)]\nmod tests;\n"),
            ("crates/core/src/a/tests.rs", ""),
            ("crates/core/src/lifecycle/mod.rs", "pub mod r#move;\n"),
            ("crates/core/src/lifecycle/move.rs", ""),
        ];
        assert!(found(&files).is_empty());
    }

    #[test]
    fn what_cargo_finds_by_itself_is_alive() {
        let files = [
            ("crates/core/src/main.rs", ""),
            ("crates/core/src/tool.rs", ""),
            ("crates/core/src/bin/one.rs", ""),
            ("crates/core/src/bin/two/main.rs", "mod part;\n"),
            ("crates/core/src/bin/two/part.rs", ""),
        ];
        assert!(found(&files).is_empty());
    }

    #[test]
    fn a_file_that_nobody_declares_is_dead() {
        let files = [
            ("crates/core/src/lib.rs", "// mod a;\nmod b { }\n"),
            ("crates/core/src/a.rs", ""),
            ("crates/core/src/b.rs", ""),
            ("crates/core/src/c/mod.rs", "mod d;\n"),
            ("crates/core/src/c/d.rs", ""),
        ];
        let dead = ["crates/core/src/a.rs", "crates/core/src/b.rs", "crates/core/src/c/mod.rs"];
        assert_eq!(found(&files), dead);
    }

    #[test]
    fn the_finding_says_what_is_missing() {
        let tree = Tree::of(&[("xtask/Cargo.toml", ""), ("xtask/src/lease/mod.rs", "")]);
        let message = "dead file: no parent module declares `mod lease;`";
        assert_eq!(check(&tree), [Finding::new("xtask/src/lease/mod.rs", 1, message)]);
    }
}
