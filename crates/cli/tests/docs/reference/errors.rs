//! `docs/reference/errors.md` has every code that the source has, and no other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where codes are made.
const CRATES: [&str; 5] = ["core", "store", "broker", "bus", "server"];

/// Shorter words in capitals are no codes (`GET`, `POST`).
const CHARS_MIN: usize = 6;

/// What cargo tells a crate about itself.
const CARGO: [&str; 2] = ["CARGO_", "OUT_DIR"];

pub(crate) fn check(root: &Path) -> Result<(), String> {
    let page =
        std::fs::read_to_string(root.join("docs/reference/errors.md")).map_err(|error| error.to_string())?;
    let told: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(code, _)| code.to_owned()))
        .filter(|code| is_code(code))
        .collect();
    let mut made = BTreeSet::new();
    for name in CRATES {
        let mut files = Vec::new();
        below(&root.join("crates").join(name).join("src"), &mut files);
        for file in files {
            let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
            // What stands below is about itself.
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            made.extend(code.split('"').skip(1).step_by(2).filter(|word| is_code(word)).map(str::to_owned));
        }
    }
    let missing: Vec<&String> = made.difference(&told).collect();
    let gone: Vec<&String> = told.difference(&made).collect();
    if missing.is_empty() && gone.is_empty() {
        return Ok(());
    }
    Err(format!("docs/reference/errors.md: not there: {missing:?}; there, but not in the source: {gone:?}"))
}

fn is_code(word: &str) -> bool {
    word.len() >= CHARS_MIN
        && !CARGO.iter().any(|told| word.starts_with(told))
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.bytes().all(|c| c.is_ascii_uppercase() || c == b'_')
}

fn below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            below(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") && name != "tests.rs" {
            files.push(path);
        }
    }
}
