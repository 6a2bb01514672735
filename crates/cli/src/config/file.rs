//! A file of configuration, and where in it everything stands.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use toml::de::DeTable;

use super::keys::{KEYS, Key, Layer};

/// A place in a file, as editors count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Place {
    fn of(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or_default();
        let column = before.chars().rev().take_while(|letter| *letter != '\n').count() + 1;
        Self { line: before.matches('\n').count() + 1, column }
    }
}

/// What is wrong in a file of TOML, and where. The line is not repeated: there may be a password in it.
pub(crate) fn misplaced(text: &str, error: &toml::de::Error) -> String {
    let Place { line, column } = Place::of(text, error.span().unwrap_or_default().start);
    format!("line {line}, column {column}: {}", error.message())
}

/// What is wrong in a file, and where. The lines are not repeated: there may be a password in one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problems(Vec<(Place, String)>);

impl Problems {
    /// A line for each, as compilers write them.
    fn within(&self, path: &Path) -> String {
        let path = path.display();
        let line = |(Place { line, column }, problem): &(Place, String)| {
            format!("{path}:{line}:{column}: {problem}")
        };
        self.0.iter().map(line).collect::<Vec<String>>().join("\n")
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = |(Place { line, column }, problem): &(Place, String)| {
            format!("line {line}, column {column}: {problem}")
        };
        f.write_str(&self.0.iter().map(said).collect::<Vec<String>>().join("\n"))
    }
}

impl std::error::Error for Problems {}

/// Where each key stands that is in a file.
type Places = Vec<(&'static str, Place)>;

/// A file that was read.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    pub(super) path: PathBuf,
    pub(super) layer: Layer,
    places: Places,
}

impl Written {
    /// Reads a file. All keys that are none are told, each with its place; a value of the wrong kind is, too.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let written = Layer::written(&text).map_err(|problems| anyhow!(problems.within(path)));
        written.map(|(layer, places)| Self { path: path.to_owned(), layer, places })
    }

    /// Where a key stands.
    pub(super) fn place(&self, key: &Key) -> Option<Place> {
        self.places.iter().find(|(name, _)| *name == key.name).map(|(_, place)| *place)
    }
}

impl Layer {
    /// What the text of a file says, and where.
    pub(crate) fn written(text: &str) -> Result<(Self, Places), Problems> {
        let places = places(text)?;
        let layer = toml::from_str(text).map_err(|error| Problems(vec![problem(text, &error)]))?;
        Ok((layer, places))
    }
}

fn problem(text: &str, error: &toml::de::Error) -> (Place, String) {
    (Place::of(text, error.span().unwrap_or_default().start), error.message().to_owned())
}

/// Where each key stands, or what stands there that is no key.
fn places(text: &str) -> Result<Places, Problems> {
    let table = DeTable::parse(text).map_err(|error| Problems(vec![problem(text, &error)]))?;
    let (mut places, mut problems) = (Vec::new(), Vec::new());
    for name in table.get_ref().keys() {
        let place = Place::of(text, name.span().start);
        match Key::named(name.get_ref()) {
            Some(key) => places.push((key.name, place)),
            None => problems.push((place, unknown(name.get_ref()))),
        }
    }
    problems.sort_by_key(|(place, _)| (place.line, place.column));
    if problems.is_empty() { Ok(places) } else { Err(Problems(problems)) }
}

fn unknown(name: &str) -> String {
    let known = nearest(name, KEYS.iter().map(|key| key.name));
    let meant = known.map(|known| format!(": did you mean `{known}`?"));
    format!("unknown key `{}`{}", name.escape_debug(), meant.unwrap_or_default())
}

/// The name that was probably meant: a third of its letters may be wrong.
fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    // Nobody means a name by a text that is far longer than any.
    let name = (name.len() <= 80).then(|| name.to_lowercase().replace('-', "_"))?;
    let near = known.map(|known| (distance(&name, known), known)).min()?;
    (near.0 * 3 <= near.1.len()).then_some(near.1)
}

/// How many letters must be put in, taken out or changed to make one text the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, known) in other.chars().enumerate() {
            let changed = diagonal + usize::from(letter != known);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_none_is_told_with_the_one_that_was_meant() {
        let said = |text| Layer::written(text).unwrap_err().to_string();
        assert_eq!(
            said("workers = 1\nlisen = 1"),
            "line 2, column 1: unknown key `lisen`: did you mean `listen`?"
        );
        assert_eq!(
            said("  tls-cert = 1"),
            "line 1, column 3: unknown key `tls-cert`: did you mean `tls_cert`?"
        );
        assert_eq!(said("[server]\nlisten = 1"), "line 1, column 2: unknown key `server`");
        assert_eq!(said("\"a\\nb\" = 1"), "line 1, column 1: unknown key `a\\nb`");
        assert!(said("listen = 1").starts_with("line 1, column 10: invalid type"), "{}", said("listen = 1"));
        let unended = said("store = \"postgres://me:secret@here/db\nlisten = \"x\"");
        assert!(unended.starts_with("line 1") && !unended.contains("secret"), "{unended}");
    }

    #[test]
    fn all_keys_that_are_none_are_told_at_once() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "lisen = 1\n\nzzz = 2\nworkers = 3\n").unwrap();
        let said = Written::read(file.path()).unwrap_err().to_string();
        let path = file.path().display();
        let expected =
            format!("{path}:1:1: unknown key `lisen`: did you mean `listen`?\n{path}:3:1: unknown key `zzz`");
        assert_eq!(said, expected);
    }

    #[test]
    fn distances_are_those_of_levenshtein() {
        for (one, other, far) in [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3), ("lisen", "listen", 1)]
        {
            assert_eq!((distance(one, other), distance(other, one)), (far, far));
        }
    }
}
