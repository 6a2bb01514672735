//! `Cargo.toml` as a flat list of dotted keys, each with its line.
//!
//! TOML has four ways to write the same dependency (`a = "1"`, `a.version = "1"`, `a = { version = "1" }` and a table
//! `[dependencies.a]`); flattened they all become `dependencies.a…`. Cargo has read the manifest before any check
//! runs, so this reader takes valid TOML for granted and diagnoses nothing.

use super::tree::Tree;

pub(super) struct Manifest {
    entries: Vec<Entry>,
}

/// One key that has a value; tables exist only as the beginnings of such keys.
struct Entry {
    key: Vec<String>,
    value: String,
    line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Normal,
    Build,
    Dev,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Dependency {
    pub(super) kind: Kind,
    /// The package's own name, also where the manifest gives it another one.
    pub(super) package: String,
    pub(super) line: usize,
}

/// A member of the workspace.
pub(super) struct Crate {
    /// The name of its folder: `core`, `store-memory`, `xtask`.
    pub(super) folder: String,
    pub(super) manifest_path: String,
    pub(super) manifest: Manifest,
}

/// The members of the workspace: `crates/*` and `xtask`.
pub(super) fn crates(tree: &Tree) -> Vec<Crate> {
    tree.with_extension("toml").filter_map(|(path, text)| member(path, text)).collect()
}

fn member(path: &str, text: &str) -> Option<Crate> {
    let root = path.strip_suffix("/Cargo.toml")?;
    let folder = if root == "xtask" { root } else { root.strip_prefix("crates/")? };
    let is_member = !folder.contains('/');
    is_member.then(|| Crate {
        folder: folder.to_owned(),
        manifest_path: path.to_owned(),
        manifest: Manifest::parse(text),
    })
}

impl Manifest {
    pub(super) fn parse(text: &str) -> Self {
        let mut reader = Reader { rest: text, line: 1, entries: Vec::new() };
        reader.document();
        Self { entries: reader.entries }
    }

    /// The value of a key: a string without its quotes, everything else as written.
    pub(super) fn value(&self, key: &[&str]) -> Option<&str> {
        self.entry(key).map(|entry| entry.value.as_str())
    }

    /// Whether a key has this value; in an array of tables, whether it has it in one of them.
    pub(super) fn has(&self, key: &[&str], value: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key && entry.value == value)
    }

    /// The line of a key, or 1 where the manifest does not have it.
    pub(super) fn line(&self, key: &[&str]) -> usize {
        self.entry(key).map_or(1, |entry| entry.line)
    }

    /// The dependencies of all kinds and targets. The workspace's manifest is needed for the names that
    /// `workspace = true` refers to.
    pub(super) fn dependencies(&self, workspace: &Self) -> Vec<Dependency> {
        let mut found: Vec<Dependency> = Vec::new();
        for entry in &self.entries {
            let Some((kind, table, name)) = dependency_key(&entry.key) else {
                continue;
            };
            let package =
                self.package(table, name).or_else(|| workspace.package(&["workspace", "dependencies"], name));
            let package = package.unwrap_or(name).to_owned();
            if !found.iter().any(|known| known.kind == kind && known.package == package) {
                found.push(Dependency { kind, package, line: entry.line });
            }
        }
        found
    }

    /// What `package = "…"` says about the dependency `name` of this table.
    fn package<T: AsRef<str>>(&self, table: &[T], name: &str) -> Option<&str> {
        let mut key: Vec<&str> = table.iter().map(AsRef::as_ref).collect();
        key.extend([name, "package"]);
        self.value(&key)
    }

    fn entry(&self, key: &[&str]) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }
}

/// Splits `dependencies.bytes.workspace` or `target.'cfg(unix)'.dependencies.libc` into kind, table and name.
fn dependency_key(key: &[String]) -> Option<(Kind, &[String], &str)> {
    let table_len = if key.first()? == "target" { 3 } else { 1 };
    let table = key.get(..table_len)?;
    let kind = match table.last()?.as_str() {
        "dependencies" => Kind::Normal,
        "build-dependencies" => Kind::Build,
        "dev-dependencies" => Kind::Dev,
        _ => return None,
    };
    Some((kind, table, key.get(table_len)?))
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    entries: Vec<Entry>,
}

impl Reader<'_> {
    fn document(&mut self) {
        let mut table = Vec::new();
        self.skip_blank();
        while !self.rest.is_empty() {
            if self.rest.starts_with('[') {
                table = self.header();
            } else {
                self.entry(&table);
            }
            self.skip_blank();
        }
    }

    /// `[a.b]` or `[[a]]`; the checks need not tell the tables of an array apart.
    fn header(&mut self) -> Vec<String> {
        self.take_while(|c| c == '[');
        let key = self.key();
        self.take_while(|c| c == ']');
        key
    }

    fn entry(&mut self, table: &[String]) {
        let line = self.line;
        let mut key = table.to_vec();
        key.extend(self.key());
        self.take_while(|c| matches!(c, '=' | ' ' | '\t'));
        self.value(key, line);
    }

    fn key(&mut self) -> Vec<String> {
        let mut parts = Vec::new();
        loop {
            self.take_while(|c| matches!(c, ' ' | '\t' | '.'));
            match self.rest.chars().next() {
                Some('"' | '\'') => parts.push(self.string()),
                Some(c) if is_bare(c) => parts.push(self.take_while(is_bare).to_owned()),
                _ => return parts,
            }
        }
    }

    fn value(&mut self, key: Vec<String>, line: usize) {
        let value = match self.rest.chars().next() {
            Some('{') => return self.inline_table(&key),
            Some('[') => self.array(),
            Some('"' | '\'') => self.string(),
            _ => self.take_while(|c| !matches!(c, ',' | '}' | ']' | '#' | '\n')).trim().to_owned(),
        };
        self.entries.push(Entry { key, value, line });
    }

    fn inline_table(&mut self, key: &[String]) {
        self.take(1);
        loop {
            self.skip_blank();
            match self.rest.chars().next() {
                Some(',') => self.take(1),
                Some(c) if is_bare(c) || matches!(c, '"' | '\'') => {
                    self.entry(key);
                    continue;
                }
                _ => {
                    self.take(1);
                    return;
                }
            };
        }
    }

    /// No check looks into an array, but its strings and comments may have brackets in them.
    fn array(&mut self) -> String {
        let start = self.rest;
        let mut depth = 0_usize;
        while let Some(c) = self.rest.chars().next() {
            match c {
                '#' => self.skip_blank(),
                '"' | '\'' => drop(self.string()),
                _ => drop(self.take(c.len_utf8())),
            }
            match c {
                '[' => depth += 1,
                ']' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        start[..start.len() - self.rest.len()].to_owned()
    }

    /// A string of any of the four kinds, without its quotes; escapes stay as they are written.
    fn string(&mut self) -> String {
        let quote = &self.rest[..1];
        let triple = quote.repeat(3);
        let delimiter = if self.rest.starts_with(&triple) { triple } else { quote.to_owned() };
        let basic = quote == "\"";
        self.take(delimiter.len());
        let mut end = 0;
        while end < self.rest.len() && !self.rest[end..].starts_with(&delimiter) {
            let escaped = basic && self.rest[end..].starts_with('\\');
            end += self.rest[end..].chars().take(1 + usize::from(escaped)).map(char::len_utf8).sum::<usize>();
        }
        let content = self.take(end).to_owned();
        self.take(delimiter.len().min(self.rest.len()));
        content
    }

    /// Skips white space, the ends of lines, and comments.
    fn skip_blank(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            if !self.rest.starts_with('#') {
                return;
            }
            self.take_while(|c| c != '\n');
        }
    }
}

impl<'a> Reader<'a> {
    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let length = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        self.take(length)
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }
}

fn is_bare(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packages(text: &str, workspace: &str) -> Vec<(Kind, String, usize)> {
        let dependencies = Manifest::parse(text).dependencies(&Manifest::parse(workspace));
        dependencies.into_iter().map(|found| (found.kind, found.package, found.line)).collect()
    }

    #[test]
    fn a_dependency_is_found_however_it_is_written() {
        let text = "\
[dependencies]
a = \"1\"
b.workspace = true
c = { version = \"1\", features = [\"x\", \"y # ]\"], default-features = false } # all of it
d = { version = \"1\", features = [
    \"x\", # with ]
    \"y\",
] }

[dependencies.e]
version = \"1\"
optional = true

[dev-dependencies]
f = '1'
[build-dependencies]
g = \"1\"
[target.'cfg(unix)'.dependencies]
h = \"1\"
[features]
default = [\"e\"]
";
        let expected = [
            (Kind::Normal, "a", 2),
            (Kind::Normal, "b", 3),
            (Kind::Normal, "c", 4),
            (Kind::Normal, "d", 5),
            (Kind::Normal, "e", 11),
            (Kind::Dev, "f", 15),
            (Kind::Build, "g", 17),
            (Kind::Normal, "h", 19),
        ];
        assert_eq!(packages(text, ""), expected.map(|(kind, name, line)| (kind, name.to_owned(), line)));
    }

    #[test]
    fn a_dependency_has_its_own_name_even_where_it_is_renamed() {
        let text = "[dependencies]\nhere = { package = \"real\", path = \"x\" }\nthere.workspace = true\n";
        let workspace = "[workspace.dependencies]\nthere = { package = \"other\", path = \"y\" }\n";
        let expected = [(Kind::Normal, "real".to_owned(), 2), (Kind::Normal, "other".to_owned(), 3)];
        assert_eq!(packages(text, workspace), expected);
    }

    #[test]
    fn values_are_read_without_their_quotes() {
        let manifest = Manifest::parse(
            "[package]\nname = \"a\" # b\ntext = \"\"\"\none \\\"\"\"\"\nliteral = '\\'\n[[bin]]\npath = \"src/x.rs\"\n",
        );
        assert_eq!(manifest.value(&["package", "name"]), Some("a"));
        assert_eq!(manifest.value(&["package", "text"]), Some("\none \\\""));
        assert_eq!(manifest.value(&["package", "literal"]), Some("\\"));
        assert_eq!(manifest.value(&["bin", "path"]), Some("src/x.rs"));
        assert_eq!(manifest.line(&["bin", "path"]), 7);
        assert_eq!(manifest.value(&["package", "license"]), None);
    }

    #[test]
    fn members_are_the_crates_and_xtask() {
        let tree = Tree::of(&[
            ("Cargo.toml", ""),
            ("clippy.toml", ""),
            ("crates/core/Cargo.toml", ""),
            ("crates/core/tests/fixture/Cargo.toml", ""),
            ("xtask/Cargo.toml", ""),
        ]);
        let folders: Vec<String> = crates(&tree).into_iter().map(|member| member.folder).collect();
        assert_eq!(folders, ["core", "xtask"]);
    }
}
