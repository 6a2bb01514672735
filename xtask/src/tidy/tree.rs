//! The repository as the checks see it: paths and texts, no file system.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::command::{self, Failure};

/// Every file that git would put into a commit, by its path from the root; files no check reads have an empty text.
pub(super) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Asks git, because only git knows what is part of the repository: build output is not, a new file already is.
    pub(super) fn read(root: &Path) -> Result<Self, Failure> {
        let mut list = Command::new("git");
        list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
        let listed = command::output(list)?;
        let mut files = BTreeMap::new();
        for path in String::from_utf8_lossy(&listed).split_terminator('\0') {
            if let Some(text) = read_text(root, path)? {
                files.insert(path.to_owned(), text);
            }
        }
        Ok(Self { files })
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect();
        Self { files }
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    pub(super) fn has_file(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Git knows no empty folders: one exists if it has a file in it. The root has the empty path.
    pub(super) fn has_folder(&self, path: &str) -> bool {
        path.is_empty() || self.below(path).next().is_some()
    }

    /// The paths and texts of the files in this folder and in those below it.
    pub(super) fn below(&self, folder: &str) -> impl Iterator<Item = (&str, &str)> {
        let prefix = format!("{folder}/");
        self.all().filter(move |(path, _)| path.starts_with(&prefix))
    }

    /// The names of the files that lie at the root.
    pub(super) fn at_root(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str).filter(|path| !path.contains('/'))
    }

    /// The paths and texts of the files with this extension.
    pub(super) fn with_extension(&self, extension: &str) -> impl Iterator<Item = (&str, &str)> {
        self.all().filter(move |(path, _)| extension_of(path) == Some(extension))
    }

    fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }
}

pub(super) fn extension_of(path: &str) -> Option<&str> {
    Path::new(path).extension()?.to_str()
}

/// `None` for a file that is deleted but still in git's index.
fn read_text(root: &Path, path: &str) -> Result<Option<String>, Failure> {
    let file = root.join(path);
    if !is_read_by_a_check(path) {
        return Ok(file.symlink_metadata().is_ok().then(String::new));
    }
    match fs::read(file) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(Failure::Unreadable { path: path.to_owned(), cause }),
    }
}

/// Pictures and fixtures may be large, and all that matters about them is that they exist.
fn is_read_by_a_check(path: &str) -> bool {
    matches!(extension_of(path), Some("rs" | "md" | "toml")) || path == ".ci/run"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_exists_by_its_files() {
        let tree = Tree::of(&[("docs/a.md", ""), ("docs-old/b.md", "")]);
        assert!(tree.has_folder("docs"));
        assert!(tree.has_folder(""));
        assert!(!tree.has_folder("doc"));
        assert_eq!(tree.below("docs").count(), 1);
    }

    #[test]
    fn this_repository_can_be_read() {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository's root");
        let tree = Tree::read(root).expect("the tests run in a git checkout");
        assert!(
            tree.text("xtask/src/tidy/tree.rs")
                .is_some_and(|text| text.contains("this_repository_can_be_read"))
        );
        assert!(!tree.has_folder("target"));
    }
}
