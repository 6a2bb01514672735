//! The layers over each other, and which of them said what.

use std::fmt;
use std::path::{Path, PathBuf};

use super::file::{Place, Written};
use super::keys::{KEYS, Key, Layer};
use super::{Config, Wrong};
use crate::key;

/// The file that is read where no other is named.
pub(crate) const FILE: &str = "redrive.toml";

/// Who said what a value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody.
    Default,
    /// A file, there.
    File(PathBuf, Option<Place>),
    /// The variable of that name.
    Variable(String),
    /// The flag of that name.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, Some(place)) => write!(f, "{}:{}", path.display(), place.line),
            Self::File(path, None) => write!(f, "{}", path.display()),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// Everything that says something about the configuration.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    flags: Layer,
    environment: Layer,
    /// The variables that are set, by key.
    variables: Vec<(&'static str, String)>,
    file: Option<Written>,
    /// What `REDRIVE_BOOTSTRAP_KEY` holds.
    bootstrap: Option<String>,
}

impl Sources {
    /// Reads the file that is named, or the one in this directory if there is one, and the environment.
    pub(crate) fn read(flags: Layer, file: Option<&Path>) -> anyhow::Result<Self> {
        let file = match file {
            Some(path) => Some(Written::read(path)?),
            None if Path::new(FILE).exists() => Some(Written::read(Path::new(FILE))?),
            None => None,
        };
        let variable = |name: &str| std::env::var(name).ok();
        let named = |key: &Key| Some((key.name, key.said(&variable)?.0));
        Ok(Self {
            flags,
            environment: Layer::environment(variable)?,
            variables: KEYS.iter().filter_map(named).collect(),
            file,
            bootstrap: variable(key::BOOTSTRAP),
        })
    }

    /// The file that was read.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_ref().map(|written| written.path.as_path())
    }

    /// Whether `REDRIVE_BOOTSTRAP_KEY` is set.
    pub(crate) fn has_bootstrap_variable(&self) -> bool {
        self.bootstrap.is_some()
    }

    /// What was said, without the defaults.
    pub(crate) fn layer(&self) -> Layer {
        let written = self.file.as_ref().map(|written| written.layer.clone()).unwrap_or_default();
        self.flags.clone().over(self.environment.clone().over(written))
    }

    /// Who said what the value of a key is.
    pub(crate) fn origin(&self, key: &Key) -> Origin {
        let says = |layer: &Layer| {
            let mut said = KEYS.iter().zip(layer.written_values());
            said.any(|(said, value)| said.name == key.name && value.is_some())
        };
        if says(&self.flags) {
            return Origin::Flag(key.flag());
        }
        if let Some((_, variable)) = self.variables.iter().find(|(name, _)| *name == key.name) {
            return Origin::Variable(variable.clone());
        }
        match &self.file {
            Some(written) if says(&written.layer) => Origin::File(written.path.clone(), written.place(key)),
            _ => Origin::Default,
        }
    }

    /// What the server is started with.
    pub(crate) fn config(&self) -> anyhow::Result<Config> {
        let layer = self.layer();
        let bootstrap = key::bootstrap(self.bootstrap.clone(), layer.bootstrap_key_file.as_deref())?;
        let config = Config::of(layer).map_err(|error| self.located(error))?;
        Ok(Config { bootstrap, ..config })
    }

    /// The same, where a server could be started with it as far as this can be known before: the log lines, the
    /// certificate, and that others cannot listen. Whether the store has API keys is only known when it is open.
    pub(crate) fn startable(&self) -> anyhow::Result<Config> {
        let config = self.config()?;
        let filter = crate::logs::filter(&config.log_level).map(drop);
        let port = filter.and_then(|()| config.port.check(config.listen, true));
        port.map_err(|error| self.located(error))?;
        Ok(config)
    }

    /// An error about a value, with the place where that stands.
    fn located(&self, error: anyhow::Error) -> anyhow::Error {
        let Some(key) = error.downcast_ref::<Wrong>().and_then(|wrong| Key::named(wrong.key)) else {
            return error;
        };
        match self.origin(key) {
            Origin::Default => error,
            Origin::File(path, Some(Place { line, column })) => {
                anyhow::anyhow!("{}:{line}:{column}: {error:#}", path.display())
            }
            other => anyhow::anyhow!("{other}: {error:#}"),
        }
    }
}
