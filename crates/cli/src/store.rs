//! Which store keeps the queues, and what it promises.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use redrive_core::time::Millis;
use redrive_store_embedded::Durability;
use redrive_store_postgres as postgres;
use serde::Deserialize;

use crate::config::{Layer, Wrong};

/// What an address of PostgreSQL begins with.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// What was said about which store it is. Never shown: it may hold a password.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct StoreText(String);

impl StoreText {
    /// The store of whoever says nothing.
    pub(crate) fn embedded() -> Self {
        Self("embedded".to_owned())
    }

    /// What can be shown of it: of an address, where the database is.
    pub(crate) fn shown(&self) -> String {
        let is_address = SCHEMES.iter().any(|scheme| self.0.starts_with(scheme));
        match postgres::Options::new(self.0.as_str()).place() {
            Ok(place) if is_address => format!("postgres://…@{place}"),
            _ if is_word(&self.0) => self.0.clone(),
            _ => "…".to_owned(),
        }
    }
}

/// Whether it can be shown; anything else may have a password in it.
fn is_word(text: &str) -> bool {
    text.len() <= 20 && text.bytes().all(|letter| letter.is_ascii_alphanumeric())
}

impl FromStr for StoreText {
    type Err = Infallible;

    /// Takes everything. What clap says about a value that it does not take has the value in it.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for StoreText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreText(…)")
    }
}

/// Flags about the store.
#[derive(Debug, Args)]
pub(crate) struct StoreArguments {
    /// Which store keeps the queues: `embedded`, `memory`, or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. Others on this
    /// machine can see what is on a command line; `REDRIVE_STORE` takes the same.
    #[arg(long, value_name = "STORE")]
    store: Option<StoreText>,
    /// The schema that PostgreSQL keeps them in, `redrive` where nothing is said.
    #[arg(long, value_name = "NAME")]
    store_schema: Option<String>,
    /// Most connections to PostgreSQL, 16 where nothing is said; one more listens to other instances.
    #[arg(long, value_name = "N")]
    store_connections: Option<u32>,
    /// Whether a proxy between this server and PostgreSQL gives each transaction another connection.
    #[arg(long, value_name = "BOOL")]
    store_transaction_pooling: Option<bool>,
    /// A PEM file with the authorities that PostgreSQL's certificate must come from; those of the machine where nothing is
    /// said. `sslmode=require` in the address asks for TLS.
    #[arg(long, value_name = "FILE")]
    store_ca: Option<PathBuf>,
    /// What an answer waits for: `sync`, `none`, or `interval:MILLISECONDS`. On PostgreSQL, what the database must
    /// promise: `any`, `local` or `replicated`.
    #[arg(long, value_name = "LEVEL")]
    durability: Option<String>,
}

impl StoreArguments {
    pub(crate) fn over(self, layer: Layer) -> Layer {
        Layer {
            store: self.store,
            store_schema: self.store_schema,
            store_connections: self.store_connections,
            store_transaction_pooling: self.store_transaction_pooling,
            store_ca: self.store_ca,
            durability: self.durability,
            ..layer
        }
    }
}

/// Which store keeps the queues.
#[derive(Debug, Clone)]
pub(crate) enum StoreChoice {
    /// A journal in a directory.
    Embedded(Durability),
    /// Nothing survives the process. For trying things out.
    Memory,
    /// A database, for any number of instances. The defaults of queues are not in it yet.
    Postgres(Box<postgres::Options>),
}

impl StoreChoice {
    /// What a layer says, where it is right.
    pub(crate) fn of(layer: &Layer) -> anyhow::Result<Self> {
        let level = layer.durability.as_deref();
        let text = layer.store.as_ref().map_or("embedded", |text| text.0.as_str());
        match text {
            "embedded" => Ok(Self::Embedded(level.map_or(Ok(Durability::Sync), synced)?)),
            "memory" => {
                // It means nothing here, and may still not be nonsense.
                level.map(synced).transpose()?;
                Ok(Self::Memory)
            }
            url if SCHEMES.iter().any(|scheme| url.starts_with(scheme)) => {
                Ok(Self::Postgres(Box::new(database(url, layer)?)))
            }
            other => {
                let words = "must be embedded, memory, or postgres://USER:PASSWORD@HOST:PORT/DATABASE";
                let said = if is_word(other) { format!("`{other}` {words}") } else { words.to_owned() };
                Err(Wrong::value("store", said))
            }
        }
    }
}

fn database(url: &str, layer: &Layer) -> anyhow::Result<postgres::Options> {
    let mut options = postgres::Options::new(url);
    if let Some(schema) = &layer.store_schema {
        options.schema.clone_from(schema);
    }
    if let Some(connections) = layer.store_connections {
        options.connections = connections as usize;
    }
    if let Some(file) = &layer.store_ca {
        let unread = |error| Wrong::value("store_ca", format!("reading {}: {error}", file.display()));
        options.authorities = Some(std::fs::read(file).map_err(unread)?);
    }
    if let Some(pooling) = layer.store_transaction_pooling {
        options.transaction_pooling = pooling;
    }
    if let Some(level) = &layer.durability {
        options.durability = promised(level)?;
    }
    options.check().map_err(|wrong| {
        let field = match wrong {
            postgres::WrongOption::Url => "store",
            postgres::WrongOption::Schema => "store_schema",
            postgres::WrongOption::Connections => "store_connections",
        };
        Wrong::value(field, wrong)
    })?;
    Ok(options)
}

/// `sync`, `none`, or `interval:50` for every 50 ms.
fn synced(text: &str) -> anyhow::Result<Durability> {
    match text {
        "sync" => Ok(Durability::Sync),
        "none" => Ok(Durability::None),
        other => {
            let ms = other.strip_prefix("interval:").and_then(|ms| ms.parse().ok()).filter(|ms| *ms > 0);
            ms.map(|ms| Durability::Interval(Millis::new(ms)))
                .ok_or_else(|| wrong_level(other, "must be sync, none, or interval:MILLISECONDS"))
        }
    }
}

/// What a database must promise.
fn promised(text: &str) -> anyhow::Result<postgres::Durability> {
    match text {
        "any" => Ok(postgres::Durability::Any),
        "local" => Ok(postgres::Durability::Local),
        "replicated" => Ok(postgres::Durability::Replicated),
        other => Err(wrong_level(other, "must be any, local or replicated on PostgreSQL")),
    }
}

fn wrong_level(level: &str, must: &str) -> anyhow::Error {
    Wrong::value("durability", format!("`{level}` {must}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> anyhow::Result<StoreChoice> {
        StoreChoice::of(&toml::from_str(text).unwrap())
    }

    #[test]
    fn a_database_is_named_by_its_address() {
        let StoreChoice::Postgres(options) = of("store = \"postgresql://me:secret@here/db\"").unwrap() else {
            panic!("it is PostgreSQL");
        };
        assert_eq!(
            (options.url.as_str(), options.schema.as_str()),
            ("postgresql://me:secret@here/db", "redrive")
        );
        assert_eq!((options.connections, options.transaction_pooling), (16, false));
        assert_eq!(options.durability, postgres::Durability::Local);
        let all = "store = \"postgres://me@here/db\"\nstore_schema = \"jobs\"\nstore_connections = 4\n\
                   store_transaction_pooling = true\ndurability = \"replicated\"";
        let StoreChoice::Postgres(options) = of(all).unwrap() else { panic!("it is PostgreSQL") };
        assert_eq!((options.schema.as_str(), options.connections), ("jobs", 4));
        assert!(options.transaction_pooling && options.durability == postgres::Durability::Replicated);
    }

    #[test]
    fn levels_belong_to_their_store() {
        assert!(matches!(of(""), Ok(StoreChoice::Embedded(Durability::Sync))));
        assert!(matches!(of("durability = \"none\""), Ok(StoreChoice::Embedded(Durability::None))));
        for wrong in [
            "durability = \"local\"",
            "store = \"memory\"\ndurability = \"local\"",
            "store = \"postgres://me@here/db\"\ndurability = \"sync\"",
        ] {
            assert!(of(wrong).unwrap_err().to_string().starts_with("durability: `"), "{wrong}");
        }
    }

    #[test]
    fn nothing_that_may_be_a_password_is_shown() {
        for store in [
            "postgres://me:secret@here:port/db",
            "postgres://me:secret@@here/db",
            "postgres:/me:secret@here/db",
            "mysql://me:secret@here/db",
            "secret/secret",
        ] {
            let layer = Layer { store: Some(store.parse().unwrap()), ..Layer::default() };
            let shown = layer.store.as_ref().unwrap().shown();
            let said = format!("{:#} {layer:?} {shown}", StoreChoice::of(&layer).unwrap_err());
            assert!(said.starts_with("store: ") && !said.contains("secret"), "{said}");
        }
        for store in ["postgres://me:secret@h/d", "postgres://me:secret?a@here/db"] {
            let layer = Layer { store: Some(store.parse().unwrap()), ..Layer::default() };
            let shown = layer.store.as_ref().unwrap().shown();
            let said = format!("{:?} {layer:?} {shown}", StoreChoice::of(&layer).unwrap());
            assert!(!said.contains("secret") && shown.starts_with("postgres://…@"), "{said}");
        }
    }
}
