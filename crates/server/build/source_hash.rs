//! One number for everything that the page is built from.
//!
//! `cargo xtask ui` writes it beside what it built, and the build script compares: a page that was built from other sources
//! than those that lie beside it is told, not served in silence.

use std::fs;
use std::io;
use std::path::Path;

#[path = "../src/dashboard/fnv.rs"]
mod fnv;

pub(crate) use fnv::Fnv;

/// Where the number is kept, from the root.
pub(crate) const KEPT: &str = "web/dist/.source-hash";

/// What the page is built from, as paths from the root. A folder stands for every file below it.
pub(crate) const SOURCES: [&str; 9] = [
    "docs/openapi.json",
    "web/index.html",
    "web/package-lock.json",
    "web/package.json",
    "web/public",
    "web/src",
    "web/svelte.config.js",
    "web/tsconfig.json",
    "web/vite.config.ts",
];

/// What is made from them and lies among them.
const MADE: &str = "web/src/lib/api/schema.ts";

/// The number of the sources as they are. Those that are not there count as such.
pub(crate) fn source_hash(root: &Path) -> io::Result<String> {
    let mut number = Fnv::new();
    for source in SOURCES {
        number = add(number, root, source)?;
    }
    Ok(number.hex())
}

/// Adds a file, or every file of a folder by the order of their names. Path and length stand before the bytes, so that nothing
/// can go from one file to the next unnoticed.
fn add(number: Fnv, root: &Path, path: &str) -> io::Result<Fnv> {
    let at = root.join(path);
    if at.is_dir() {
        let mut names = fs::read_dir(&at)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<Vec<String>>>()?;
        names.sort();
        return names.iter().try_fold(number, |number, name| add(number, root, &format!("{path}/{name}")));
    }
    if path == MADE || !at.exists() {
        return Ok(number);
    }
    let bytes = fs::read(&at)?;
    Ok(number.with(path.as_bytes()).with(&[0]).with(&(bytes.len() as u64).to_le_bytes()).with(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that goes again.
    struct Root(std::path::PathBuf);

    impl Root {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("redrive-{name}-{}", std::process::id()));
            fs::create_dir_all(path.join("web/src/lib")).unwrap();
            Self(path)
        }

        fn write(&self, path: &str, text: &str) -> String {
            fs::write(self.0.join(path), text).unwrap();
            source_hash(&self.0).unwrap()
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    #[test]
    fn every_source_counts_by_its_place_and_its_bytes_and_nothing_else_does() {
        let root = Root::new("source-hash");
        let empty = source_hash(&root.0).unwrap();
        let one = root.write("web/src/a.ts", "1");
        assert_ne!(one, empty);
        let two = root.write("web/src/lib/b.ts", "2");
        assert_ne!(two, one);
        assert_ne!(root.write("web/src/a.ts", "3"), two, "its bytes");
        assert_eq!(root.write("web/src/a.ts", "1"), two, "it is as it was");
        fs::rename(root.0.join("web/src/lib/b.ts"), root.0.join("web/src/lib/c.ts")).unwrap();
        assert_ne!(source_hash(&root.0).unwrap(), two, "its name");
        fs::rename(root.0.join("web/src/lib/c.ts"), root.0.join("web/src/lib/b.ts")).unwrap();
        assert_eq!(root.write("web/README.md", "x"), two, "it is no source");
        fs::create_dir_all(root.0.join("web/src/lib/api")).unwrap();
        assert_eq!(root.write(MADE, "x"), two, "it is made from one");
    }
}
