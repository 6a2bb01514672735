//! The file in which people keep the servers that they ask.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::failure::Failure;
use crate::config::misplaced;

/// `contexts.toml`: servers by name, and which of them is meant where nothing is said.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Contexts {
    current: Option<String>,
    contexts: BTreeMap<String, Context>,
}

/// One server.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Context {
    pub(super) url: Option<String>,
    pub(super) token: Option<String>,
    pub(super) ca: Option<PathBuf>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("url", &self.url).field("ca", &self.ca).finish_non_exhaustive()
    }
}

/// Where the file is.
pub(super) fn path(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(config.join("redrive").join("contexts.toml"))
}

impl Contexts {
    /// Reads the file; no file is no contexts.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(Failure::Io(format!("reading {}", path.display()), error)),
        };
        // The line is not repeated: there may be a token in it.
        toml::from_str(&text)
            .map_err(|error| Failure::Usage(format!("{}: {}", path.display(), misplaced(&text, &error))))
    }

    /// The context of this name, or the current one where none is named.
    pub(super) fn find(mut self, name: Option<&str>, path: &Path) -> Result<Option<Context>, Failure> {
        let Some(name) = name.map(str::to_owned).or(self.current.take()) else { return Ok(None) };
        if let Some(context) = self.contexts.remove(&name) {
            return Ok(Some(context));
        }
        let known: Vec<&str> = self.contexts.keys().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(Failure::Usage(format!("there is no context `{name}` in {}, which has {known}", path.display())))
    }
}
