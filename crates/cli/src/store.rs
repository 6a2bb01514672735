//! Which store keeps the queues, and what it promises.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use redrive_core::time::Millis;
use redrive_store_embedded::Durability;
use redrive_store_postgres as postgres;
use redrive_store_redis as redis;
use serde::Deserialize;

use crate::config::{Layer, Wrong};

/// What an address of PostgreSQL begins with.
const POSTGRES: [&str; 2] = ["postgres://", "postgresql://"];
/// What an address of Redis begins with.
const REDIS: [&str; 6] = [
    "redis://",
    "rediss://",
    "redis+cluster://",
    "rediss+cluster://",
    "redis+sentinel://",
    "rediss+sentinel://",
];

/// What a text begins with, of these.
fn scheme(text: &str, schemes: &[&'static str]) -> Option<&'static str> {
    schemes.iter().copied().find(|scheme| text.starts_with(scheme))
}

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
        let text = self.0.as_str();
        let place = if scheme(text, &POSTGRES).is_some() {
            let place = postgres::Options::new(text).place().ok();
            place.map(|place| format!("postgres://…@{place}"))
        } else {
            let place = redis::Options::new(text).place().ok();
            scheme(text, &REDIS).zip(place).map(|(scheme, place)| format!("{scheme}…@{place}"))
        };
        match place {
            Some(place) => place,
            None if is_word(text) => text.to_owned(),
            None => "…".to_owned(),
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
    /// Which store keeps the queues: `embedded`, `memory`, `postgres://USER:PASSWORD@HOST:PORT/DATABASE`,
    /// `redis://USER:PASSWORD@HOST:PORT/DATABASE`, `redis+sentinel://HOST:PORT,HOST:PORT/MASTER` or
    /// `redis+cluster://HOST:PORT,HOST:PORT`; `rediss` for TLS. Others on this machine can see what is on a command line;
    /// `REDRIVE_STORE` takes the same.
    #[arg(long, value_name = "STORE")]
    store: Option<StoreText>,
    /// The schema that PostgreSQL keeps them in, `redrive` where nothing is said.
    #[arg(long, value_name = "NAME")]
    store_schema: Option<String>,
    /// How the names of all keys in Redis begin, `redrive` where nothing is said.
    #[arg(long, value_name = "PREFIX")]
    store_prefix: Option<String>,
    /// Most connections to PostgreSQL, 16 where nothing is said; one more listens to other instances.
    #[arg(long, value_name = "N")]
    store_connections: Option<u32>,
    /// Whether a proxy between this server and PostgreSQL gives each transaction another connection.
    #[arg(long, value_name = "BOOL")]
    store_transaction_pooling: Option<bool>,
    /// A PEM file with the authorities that the certificate of PostgreSQL or Redis must come from; those of the machine where
    /// nothing is said. `sslmode=require` in the address asks for TLS, and so does `rediss://`.
    #[arg(long, value_name = "FILE")]
    store_ca: Option<PathBuf>,
    /// What an answer waits for: `sync`, `none`, or `interval:MILLISECONDS`. On PostgreSQL, what the database must
    /// promise: `any`, `local` or `replicated`; on Redis `any`, `process` or `power`.
    #[arg(long, value_name = "LEVEL")]
    durability: Option<String>,
}

impl StoreArguments {
    pub(crate) fn over(self, layer: Layer) -> Layer {
        Layer {
            store: self.store,
            store_schema: self.store_schema,
            store_prefix: self.store_prefix,
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
    /// A Redis or a cluster of them, for any number of instances. The defaults of queues are not in it yet.
    Redis(Box<redis::Options>),
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
            url if scheme(url, &POSTGRES).is_some() => Ok(Self::Postgres(Box::new(database(url, layer)?))),
            url if scheme(url, &REDIS).is_some() => Ok(Self::Redis(Box::new(server(url, layer)?))),
            other => {
                let words = "must be embedded, memory, postgres://USER:PASSWORD@HOST:PORT/DATABASE, or \
                    redis://USER:PASSWORD@HOST:PORT/DATABASE";
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
    options.authorities = authorities(layer)?;
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

fn server(url: &str, layer: &Layer) -> anyhow::Result<redis::Options> {
    let mut options = redis::Options::new(url);
    if let Some(prefix) = &layer.store_prefix {
        options.prefix.clone_from(prefix);
    }
    options.authorities = authorities(layer)?;
    if let Some(level) = &layer.durability {
        options.durability = kept(level)?;
    }
    options.check().map_err(|wrong| {
        let field = match wrong {
            redis::WrongOption::Url => "store",
            redis::WrongOption::Prefix => "store_prefix",
            redis::WrongOption::Authorities => "store_ca",
        };
        Wrong::value(field, wrong)
    })?;
    Ok(options)
}

fn authorities(layer: &Layer) -> anyhow::Result<Option<Vec<u8>>> {
    let Some(file) = &layer.store_ca else { return Ok(None) };
    let unread = |error| Wrong::value("store_ca", format!("reading {}: {error}", file.display()));
    std::fs::read(file).map(Some).map_err(unread)
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

/// What a Redis must promise.
fn kept(text: &str) -> anyhow::Result<redis::Durability> {
    match text {
        "any" => Ok(redis::Durability::Any),
        "process" => Ok(redis::Durability::Process),
        "power" => Ok(redis::Durability::Power),
        other => Err(wrong_level(other, "must be any, process or power on Redis")),
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
    fn redis_is_named_by_its_address() {
        let StoreChoice::Redis(options) = of("store = \"redis+cluster://:secret@a:1,b:2\"").unwrap() else {
            panic!("it is Redis");
        };
        assert_eq!((options.prefix.as_str(), options.durability), ("redrive", redis::Durability::Process));
        let all = "store = \"redis://here\"\nstore_prefix = \"jobs\"\ndurability = \"power\"";
        let StoreChoice::Redis(options) = of(all).unwrap() else { panic!("it is Redis") };
        assert_eq!((options.prefix.as_str(), options.durability), ("jobs", redis::Durability::Power));
        for (wrong, key) in [
            ("store = \"redis://here\"\nstore_prefix = \"a{b}\"", "store_prefix: "),
            ("store = \"redis://here:port\"", "store: "),
            ("store = \"redis://a,b\"", "store: "),
            ("store = \"redis://here\"\nstore_ca = \"Cargo.toml\"", "store_ca: "),
            ("store = \"rediss://here\"\nstore_ca = \"/nowhere\"", "store_ca: reading"),
        ] {
            let said = of(wrong).unwrap_err().to_string();
            assert!(said.starts_with(key), "{wrong}: {said}");
        }
    }

    #[test]
    fn levels_belong_to_their_store() {
        assert!(matches!(of(""), Ok(StoreChoice::Embedded(Durability::Sync))));
        assert!(matches!(of("durability = \"none\""), Ok(StoreChoice::Embedded(Durability::None))));
        for wrong in [
            "durability = \"local\"",
            "store = \"memory\"\ndurability = \"local\"",
            "store = \"postgres://me@here/db\"\ndurability = \"sync\"",
            "store = \"postgres://me@here/db\"\ndurability = \"power\"",
            "store = \"redis://here\"\ndurability = \"local\"",
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
            "redis://me:secret@here:port",
            "redis:/me:secret@here",
            "redis://me:sec/secret@here",
            "redis+cluster://:secret@here/secret",
            "secret/secret",
        ] {
            let layer = Layer { store: Some(store.parse().unwrap()), ..Layer::default() };
            let shown = layer.store.as_ref().unwrap().shown();
            let said = format!("{:#} {layer:?} {shown}", StoreChoice::of(&layer).unwrap_err());
            assert!(said.starts_with("store: ") && !said.contains("secret"), "{said}");
        }
        for (store, expected) in [
            ("postgres://me:secret@h/d", "postgres://…@"),
            ("postgres://me:secret?a@here/db", "postgres://…@"),
            ("redis://me:secret@here:1/2", "redis://…@here:1/2"),
            ("redis://me:secret@@here", "redis://…@here:6379"),
            ("rediss+cluster://:secret@a,b:2", "rediss+cluster://…@a:6379,b:2"),
        ] {
            let layer = Layer { store: Some(store.parse().unwrap()), ..Layer::default() };
            let shown = layer.store.as_ref().unwrap().shown();
            let said = format!("{:?} {layer:?} {shown}", StoreChoice::of(&layer).unwrap());
            assert!(!said.contains("secret") && shown.starts_with(expected), "{said}");
        }
    }
}
