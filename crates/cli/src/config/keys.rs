//! Everything that can be configured, in one table: the name, the kind, the default, the variable and what it is for.

use std::num::NonZeroU32;
use std::path::PathBuf;

use redrive_broker::BrokerConfig;
use redrive_bus::webhook::WebhookConfig;
use redrive_core::queue::QueueSettings;
use redrive_core::time::Millis;
use redrive_server::{BasePath, ConnectionLimits};
use redrive_store_postgres as postgres;
use redrive_store_redis as redis;
use serde::Deserialize;

use super::value::Value;
use crate::logs::LogFormat;
use crate::store::StoreText;

/// What can be configured.
#[derive(Debug)]
pub(crate) struct Key {
    /// Its name in a file.
    pub(crate) name: &'static str,
    /// What it is for, line by line.
    pub(crate) about: &'static [&'static str],
    /// A value, as it stands in a file, where there is no default.
    pub(crate) example: Option<&'static str>,
    /// Another name of its variable, and how many of its own unit are one of that.
    alias: Option<(&'static str, u64)>,
}

impl Key {
    /// The key of that name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// The variable that sets it.
    pub(crate) fn variable(&self) -> String {
        format!("REDRIVE_{}", self.name.to_ascii_uppercase())
    }

    /// Other names of that variable, which count where it is not set.
    pub(crate) fn alias(&self) -> Option<&'static str> {
        self.alias.map(|(name, _)| name)
    }

    /// The flag of `redrive serve` that sets it, where it has one.
    pub(crate) fn flag(&self) -> String {
        format!("--{}", self.name.replace('_', "-"))
    }

    /// The name of the variable that is set, and its value.
    pub(super) fn said(&self, variable: &impl Fn(&str) -> Option<String>) -> Option<(String, String, u64)> {
        let own = self.variable();
        let found = variable(&own).map(|value| (own, value, 1));
        let other = || {
            let (alias, factor) = self.alias?;
            Some((alias.to_owned(), variable(alias)?, factor))
        };
        found.or_else(other)
    }
}

fn from_variable<T: Value>(
    name: &str,
    variable: &impl Fn(&str) -> Option<String>,
) -> anyhow::Result<Option<T>> {
    let Some((name, value, factor)) = Key::named(name).and_then(|key| key.said(variable)) else {
        return Ok(None);
    };
    Ok(Some(T::read(&name, value)?.times(factor)))
}

/// Makes the table and everything that follows from it, so that none of it can differ.
macro_rules! keys {
    ($($(#[doc = $about:literal])* $field:ident: $type:ty $(= $default:expr)?
        $(, such as $example:literal)? $(, also $alias:literal times $factor:literal)?;)*) => {
        /// All keys, in the order in which they are shown.
        pub(crate) const KEYS: &[Key] = &[$(Key {
            name: stringify!($field),
            about: &[$($about),*],
            example: [$(Some($example),)? None][0],
            alias: [$(Some(($alias, $factor)),)? None][0],
        }),*];

        /// What one layer says.
        #[derive(Debug, Clone, Default, PartialEq, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub(crate) struct Layer {
            $($(#[doc = $about])* pub(crate) $field: Option<$type>,)*
        }

        impl Layer {
            /// This layer over another.
            pub(crate) fn over(self, below: Self) -> Self {
                Self { $($field: self.$field.or(below.$field),)* }
            }

            /// What holds where nobody says anything. Some keys have no such value: what they mean then depends on others.
            pub(crate) fn defaults() -> Self {
                Self { $($field: [$(Some($default),)? None].into_iter().next().flatten(),)* }
            }

            /// What the environment says, by `variable`.
            pub(crate) fn environment(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
                Ok(Self { $($field: from_variable(stringify!($field), &variable)?,)* })
            }

            /// What it says about each key of the table, as it stands in a file, without secrets.
            pub(crate) fn written_values(&self) -> Vec<Option<String>> {
                vec![$(self.$field.as_ref().map(Value::written)),*]
            }
        }
    };
}

keys! {
    /// The address and the port; port 0 takes a free one.
    listen: String = "127.0.0.1:7400".to_owned();
    /// The path below which the API and the dashboard are found, such as `/redrive`, where a proxy has something else at the
    /// root. `/healthz`, `/readyz` and `/metrics` are at the root as well, and gRPC is nowhere else.
    base_path: String = BasePath::default().to_string();
    /// The directory of the embedded store.
    data: PathBuf = PathBuf::from("redrive-data");
    /// Which store keeps the queues: `embedded`, `memory`, `postgres://USER:PASSWORD@HOST:PORT/DATABASE`,
    /// `redis://USER:PASSWORD@HOST:PORT/DATABASE`, `redis+sentinel://HOST:PORT,HOST:PORT/MASTER` or `redis+cluster://HOST:PORT,HOST:PORT`; `rediss` for TLS.
    store: StoreText = StoreText::embedded();
    /// The schema that PostgreSQL keeps the queues in.
    store_schema: String = postgres::Options::new("").schema;
    /// How the names of all keys in Redis begin.
    store_prefix: String = redis::Options::new("").prefix;
    /// Most connections to PostgreSQL; one more listens to other instances.
    store_connections: u32 = u32::try_from(postgres::Options::new("").connections).unwrap_or(u32::MAX);
    /// Whether a proxy between this server and PostgreSQL gives each transaction another connection.
    store_transaction_pooling: bool = postgres::Options::new("").transaction_pooling;
    /// A PEM file with the authorities that the certificate of PostgreSQL or Redis must come from; those of the machine
    /// where nothing is said.
    store_ca: PathBuf, such as "\"ca.pem\"";
    /// What an answer waits for: `sync`, `none`, or `interval:MILLISECONDS`; `sync` where nothing is said. On PostgreSQL,
    /// what the database must promise: `any`, `local` or `replicated`; `local` where nothing is said. On Redis, what the
    /// server must promise: `any`, `process` or `power`; `process` where nothing is said.
    durability: String, such as "\"sync\"";
    /// Whether a queue comes into being by the first message for it. Where nothing is said, it does if `listen` is on
    /// loopback.
    auto_create: bool, such as "true";
    /// How log lines look: `human` or `json`.
    log_format: LogFormat = LogFormat::Human;
    /// Which log lines are written, such as `info` or `warn,redrive=debug`.
    log_level: String = "info".to_owned();
    /// How long a lease lasts in a queue that says nothing.
    lease_timeout_ms: u64 = QueueSettings::default().lease_timeout.get(), also "ACK_TIMEOUT_SECONDS" times 1_000;
    /// Most attempts of a message, the first included, in a queue that says nothing.
    max_attempts: u32 = QueueSettings::default().retry.max_attempts.map_or(0, NonZeroU32::get),
        also "MAX_ATTEMPTS" times 1;
    /// How many overdue leases are ended in one step, from 1 to 1000.
    requeue_batch_size: u32 = u32::try_from(BrokerConfig::default().requeue_batch_size.get()).unwrap_or(u32::MAX),
        also "REQUEUE_BATCH_SIZE" times 1;
    /// How often overdue leases are looked for where no timer says when, 10 at least.
    overdue_check_interval_ms: u64 = BrokerConfig::default().overdue_check_interval.get(),
        also "OVERDUE_CHECK_INTERVAL_MS" times 1;
    /// What a lease that ran out while the server was down is granted after the start. Embedded store only.
    restart_grace_ms: u64 = Millis::from_secs(5).get();
    /// Most long polls that wait at a time.
    polls_max: u32 = u32::try_from(BrokerConfig::default().polls_max).unwrap_or(u32::MAX);
    /// Where traces go: a collector that takes OTLP over gRPC. Nowhere where nothing is said.
    otlp_endpoint: String, such as "\"http://127.0.0.1:4317\"", also "OTEL_EXPORTER_OTLP_ENDPOINT" times 1;
    /// How many of the traces that begin here are recorded, from 0 to 1.
    trace_ratio: f64 = 1.0;
    /// Threads that serve, from 1 to 1024; where nothing is said, one less than the machine has processors.
    workers: u32, such as "3";
    /// The file with the API key that may do everything. `REDRIVE_BOOTSTRAP_KEY` holds the key itself; only one of the
    /// two may be given.
    bootstrap_key_file: PathBuf, such as "\"bootstrap.key\"";
    /// Whether `GET /v1/events` tells who shows no API key how much happens, where one is needed: counts, and no names.
    open_reading: bool = false;
    /// For how many days the audit trail is kept, from 1 to 3650.
    audit_days: u32 = days(BrokerConfig::default().audit_kept);
    /// The file with the certificate and those above it, as PEM. With it, the server speaks TLS only.
    tls_cert: PathBuf, such as "\"cert.pem\"";
    /// The file with the key of the certificate, as PEM.
    tls_key: PathBuf, such as "\"key.pem\"";
    /// Names by which the server may be called while it has no API keys, beside IP addresses and localhost.
    allowed_hosts: Vec<String> = Vec::new();
    /// Most connections.
    connections_max: u32 = ConnectionLimits::default().max;
    /// Most connections from one address; 1024 where nothing is said, without a limit for this machine itself.
    connections_per_address_max: u32, such as "1024";
    /// Whether webhooks are sent from here. Where they are not, they wait for an instance that sends them.
    webhooks: bool = true;
    /// Whom webhooks may call beyond public addresses at ports 80 and 443: an address, a network or the name of a host,
    /// then, where it is wanted, a colon and a port or `*`, such as `10.0.0.0/8:*` or `intranet.example.com:8443`.
    webhook_allow: Vec<String> = Vec::new();
    /// A PEM file with authorities that webhooks trust beside those of the machine.
    webhook_authorities: PathBuf, such as "\"authorities.pem\"";
    /// How long a webhook may take to connect, from 1 to 60000.
    webhook_connect_timeout_ms: u64 = WebhookConfig::default().connect_timeout.get();
    /// Lets the server be reached from other machines without TLS.
    insecure_without_tls: bool = false;
    /// Lets the server be reached from other machines without API keys.
    insecure_without_keys: bool = false;
}

fn days(span: Millis) -> u32 {
    u32::try_from(span.get() / Millis::from_days(1).get()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_documented_and_has_a_default_or_an_example() {
        let defaults = Layer::defaults().written_values();
        for (key, default) in KEYS.iter().zip(&defaults) {
            assert!(!key.about.is_empty(), "{}", key.name);
            assert!(default.is_some() != key.example.is_some(), "{}: one of the two", key.name);
        }
        assert_eq!(KEYS.len(), defaults.len());
    }

    #[test]
    fn every_key_is_read_from_its_variable() {
        for (at, key) in KEYS.iter().enumerate() {
            let text = Layer::defaults().written_values()[at]
                .clone()
                .unwrap_or_else(|| key.example.unwrap().to_owned());
            let text = text.trim_matches(['"', '[', ']']).to_owned();
            let layer = Layer::environment(|name| (name == key.variable()).then(|| text.clone())).unwrap();
            let set: Vec<&str> = KEYS
                .iter()
                .zip(layer.written_values())
                .filter_map(|(key, value)| value.map(|_| key.name))
                .collect();
            assert_eq!(set, [key.name]);
        }
    }
}
