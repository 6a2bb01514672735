//! The files of the page, compressed once, when the binary is built, as well as can be.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::source_hash::{Fnv, KEPT, SOURCES, source_hash};

/// Where the built page is, from the root.
const DIST: &str = "web/dist";
/// The page itself, which the server writes anew for the path below which it is found.
const INDEX: &str = "index.html";
/// What is written anew in it: the beginning of the tag, which may end in one way or another.
const BASE: &str = "<base href=\"/\"";
/// What each kind of file is served as. One that is not here would be served as something that a browser must guess.
const KINDS: [(&str, &str); 9] = [
    ("css", "text/css; charset=utf-8"),
    ("ico", "image/x-icon"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain; charset=utf-8"),
    ("webmanifest", "application/manifest+json"),
    ("woff2", "font/woff2"),
];

pub(crate) fn embed() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../..").canonicalize()?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    watch(&root);
    warn_of_other_sources(&root)?;
    let dist = root.join(DIST);
    let mut paths = Vec::new();
    list(&dist, "", &mut paths).map_err(|error| format!("{DIST}: {error}: `cargo xtask ui` makes it"))?;
    paths.sort();
    if !paths.iter().any(|path| path == INDEX) {
        return Err(format!("{DIST}/{INDEX} is missing: `cargo xtask ui` makes it").into());
    }
    let mut table = "[\n".to_owned();
    for (number, path) in paths.iter().enumerate() {
        let bytes = fs::read(dist.join(path))?;
        if path == INDEX {
            index(&bytes, &out)?;
        } else {
            writeln!(table, "{},", entry(path, &bytes, &out.join(number.to_string()))?)?;
        }
    }
    table.push(']');
    Ok(fs::write(out.join("dashboard.rs"), table)?)
}

/// Has cargo come back when the page or one of its sources changes. What is not there would have it come back each time.
fn watch(root: &Path) {
    for path in SOURCES.into_iter().chain([DIST]) {
        let path = root.join(path);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
}

/// Says where the page is not the one that the sources make.
fn warn_of_other_sources(root: &Path) -> io::Result<()> {
    let kept = fs::read_to_string(root.join(KEPT)).unwrap_or_default();
    if kept.trim() != source_hash(root)? {
        println!(
            "cargo::warning=web/dist was built from other sources than those in web/: `cargo xtask ui` builds it"
        );
    }
    Ok(())
}

/// The files below a folder, by their paths from there. What begins with a dot is not for browsers.
fn list(dist: &Path, folder: &str, paths: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(dist.join(folder))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if name.starts_with('.') {
            continue;
        }
        if entry.file_type()?.is_dir() {
            list(dist, &path, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}

/// The page goes as it is: the server compresses it when it knows what it says.
fn index(bytes: &[u8], out: &Path) -> Result<(), Box<dyn Error>> {
    let text = std::str::from_utf8(bytes)?;
    if text.matches(BASE).count() != 1 {
        return Err(format!("{DIST}/{INDEX} must have `{BASE}` once").into());
    }
    Ok(fs::write(out.join(INDEX), text)?)
}

/// A file in the table of the server, with what it is included from beside it in `made`.
fn entry(path: &str, bytes: &[u8], made: &Path) -> Result<String, Box<dyn Error>> {
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let known = KINDS.iter().find(|(known, _)| *known == extension);
    let (_, kind) = known.ok_or_else(|| format!("{DIST}/{path}: nobody knows what `.{extension}` is"))?;
    let hash = Fnv::new().with(bytes).hex();
    let plain = included(bytes, made, "plain")?;
    let gzip = smaller(bytes, &gzip(bytes)?, made, "gzip")?;
    let brotli = smaller(bytes, &brotli(bytes)?, made, "brotli")?;
    let path = format!("/{path}");
    Ok(format!(
        "    File {{ path: {path:?}, kind: {kind:?}, hash: {hash:?}, plain: {plain}, gzip: {gzip}, brotli: {brotli} }}"
    ))
}

/// Bytes as an expression, by a file that has them.
fn included(bytes: &[u8], made: &Path, name: &str) -> io::Result<String> {
    let file = made.with_extension(name);
    fs::write(&file, bytes)?;
    Ok(format!("include_bytes!({:?})", file.display().to_string()))
}

/// The same for bytes that are only worth it where there are fewer of them.
fn smaller(bytes: &[u8], compressed: &[u8], made: &Path, name: &str) -> io::Result<String> {
    if compressed.len() >= bytes.len() {
        return Ok("None".to_owned());
    }
    Ok(format!("Some({})", included(compressed, made, name)?))
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn brotli(mut bytes: &[u8]) -> io::Result<Vec<u8>> {
    let params = brotli::enc::BrotliEncoderParams { size_hint: bytes.len(), ..Default::default() };
    let mut compressed = Vec::new();
    brotli::BrotliCompress(&mut bytes, &mut compressed, &params)?;
    Ok(compressed)
}
