//! The inputs that every search starts with: valid ones, those at a limit, and every one that ever failed.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of a target's inputs.
pub fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// The inputs of a target, in the order of their names, so that a search can be repeated.
pub fn read(target: &str) -> Vec<Vec<u8>> {
    let folder = folder(target);
    let listed = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = listed.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    files
        .iter()
        .map(|file| fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display())))
        .collect()
}

/// Writes an input that failed where it can be found, and says where that is.
pub fn keep(target: &str, input: &[u8]) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/fuzz/failed");
    let file = folder.join(target);
    let kept = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, input));
    kept.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    file.canonicalize().unwrap_or(file)
}
