//! `cargo xtask ui`: builds the page from `web/` into `web/dist`, which is part of the repository so that nobody else needs
//! Node.js.
//!
//! On the way the types are made from the API's description, the sources are checked and their tests run. With `--check`,
//! as in the test command, it fails where what was built is not what lies there: a page must be the one that its sources make.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Exit;
use crate::command::{self, Failure};
use crate::npm;
use crate::source_hash::{KEPT, source_hash};

/// The scripts of `web/package.json` in their order: types, checks, tests, the page.
const SCRIPTS: [&str; 4] = ["types", "check", "test", "build"];
/// What is made and lies in the repository. The types do not: they follow from the API's description, which does.
const MADE: &str = "web/dist";

pub(crate) fn run(root: &Path, flags: &[String]) -> Result<(), Exit> {
    match flags {
        [] => Ok(build(root)?),
        [flag] if flag == "--check" => Ok(check(root)?),
        [known, flag, ..] if known == "--check" => Err(unknown(flag)),
        [flag, ..] => Err(unknown(flag)),
    }
}

fn unknown(flag: &str) -> Exit {
    Exit::Usage(format!("ui does not know `{flag}`"))
}

/// Builds the page, and says whether it is the one that was there.
pub(crate) fn check(root: &Path) -> Result<(), Failure> {
    build(root)?;
    let changed = listed(root, &["diff", "--name-only"])?;
    let new = listed(root, &["ls-files", "--others", "--exclude-standard"])?;
    match [changed, new].concat() {
        paths if paths.is_empty() => Ok(()),
        paths => Err(Failure::Stale { paths }),
    }
}

fn build(root: &Path) -> Result<(), Failure> {
    npm::packages(root)?;
    for script in SCRIPTS {
        npm::run_script(root, script)?;
    }
    let kept = root.join(KEPT);
    let written = source_hash(root).and_then(|hash| fs::write(&kept, hash + "\n"));
    written.map_err(|cause| Failure::Unreadable { path: kept.display().to_string(), cause })
}

/// What git lists of what is made.
fn listed(root: &Path, arguments: &[&str]) -> Result<Vec<String>, Failure> {
    let mut git = Command::new("git");
    git.args(arguments).args(["--", MADE]).current_dir(root);
    let listed = command::output(git)?;
    Ok(String::from_utf8_lossy(&listed).lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository that goes again.
    struct Repository(std::path::PathBuf);

    impl Repository {
        fn new() -> Self {
            let root = std::env::temp_dir().join(format!("redrive-ui-{}", std::process::id()));
            fs::create_dir_all(root.join("web/dist")).unwrap();
            let repository = Self(root);
            repository.git(&["init", "--quiet"]);
            repository.write("web/dist/index.html", "old");
            repository.git(&["add", "."]);
            repository
        }

        fn git(&self, arguments: &[&str]) {
            assert!(Command::new("git").args(arguments).current_dir(&self.0).status().unwrap().success());
        }

        fn write(&self, path: &str, text: &str) {
            fs::write(self.0.join(path), text).unwrap();
        }

        fn made(&self) -> Vec<String> {
            let listed = |arguments: &[&str]| listed(&self.0, arguments).unwrap();
            let changed = listed(&["diff", "--name-only"]);
            [changed, listed(&["ls-files", "--others", "--exclude-standard"])].concat()
        }
    }

    impl Drop for Repository {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    #[test]
    fn what_is_made_otherwise_is_found_and_nothing_else_is() {
        let repository = Repository::new();
        repository.write("web/other", "x");
        assert!(repository.made().is_empty());
        repository.write("web/dist/index.html", "new");
        repository.write("web/dist/app.js", "new");
        assert_eq!(repository.made(), ["web/dist/index.html", "web/dist/app.js"]);
        fs::remove_file(repository.0.join("web/dist/index.html")).unwrap();
        assert_eq!(repository.made(), ["web/dist/index.html", "web/dist/app.js"], "one that is gone, too");
    }
}
