//! The documentation, held against the real binary.
//!
//! * Every command in README.md and below `docs/` is run, in the order of its page, and must print what stands there.
//! * The reference is made from the code, or compared with it.
//! * What `deploy/` names exists.
//!
//! `REDRIVE_BLESS=1` writes what the binary says into the pages instead. How a page is written is in
//! `docs/decisions/0031-docs-that-run.md`.

mod compare;
mod deploy;
mod harness;
mod page;
mod play;
mod reference;
mod server;
mod shell;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

use page::Page;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let root = root();
    let bless = std::env::var_os("REDRIVE_BLESS").is_some();
    let mut trials = vec![trial("there_are_pages", {
        let root = root.clone();
        move || found(&root)
    })];
    for name in pages(&root) {
        let root = root.clone();
        trials.push(trial(&format!("page::{name}"), move || {
            let page = Page::read(&root, &name)?;
            if page.steps.is_empty() { Ok(()) } else { play::play(&root, page, bless) }
        }));
    }
    for (name, make) in reference::PAGES {
        let root = root.clone();
        trials.push(trial(&format!("reference::{name}"), move || reference::hold(&root, name, make, bless)));
    }
    for (name, check) in reference::CHECKS.into_iter().chain(deploy::CHECKS) {
        let root = root.clone();
        trials.push(trial(name, move || check(&root)));
    }
    trials.extend(harness::CHECKS.into_iter().map(|(name, check)| trial(name, check)));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Something that can be wrong.
type Check = fn(&Path) -> Result<(), String>;

fn trial(name: &str, run: impl FnOnce() -> Result<(), String> + Send + 'static) -> Trial {
    Trial::test(name, move || run().map_err(Failed::from))
}

/// The root of the repository. Cargo's variable at run time comes first: two checkouts may share one target folder.
fn root() -> PathBuf {
    let cli = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let mut root = PathBuf::from(cli);
    root.pop();
    root.pop();
    root
}

/// README.md and everything below `docs/`, by name.
fn pages(root: &Path) -> Vec<String> {
    let mut found = vec!["README.md".to_owned()];
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(root.join(&folder)).into_iter().flatten().flatten();
        for entry in entries {
            let path = folder.join(entry.file_name());
            if root.join(&path).is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path.display().to_string());
            }
        }
    }
    found.sort();
    found
}

/// A check of nothing must not pass.
fn found(root: &Path) -> Result<(), String> {
    let pages = pages(root);
    match pages.iter().find(|page| *page == "docs/guides/first-queue.md") {
        Some(_) if pages.len() > 20 => Ok(()),
        _ => Err(format!("these pages were found below {}: {pages:?}", root.display())),
    }
}
