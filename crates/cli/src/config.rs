//! The configuration of the server: defaults, under a file, under the environment, under flags.
//!
//! A layer is what one of those says; what it does not say comes from the layer below. A wrong value stops the start with a
//! message that says which value, and where it stands.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use redrive_broker::{BrokerConfig, TraceRatio};
use redrive_core::access::Token;
use redrive_core::queue::QueueSettings;
use redrive_core::time::Millis;
use redrive_store::Limit;
use serde::Deserialize;

use crate::key;
use crate::logs::LogFormat;
use crate::port::PortSettings;
use crate::store::{StoreChoice, StoreText};

/// The file that is read where no other is named.
const FILE: &str = "redrive.toml";

/// Most threads that serve.
const WORKERS_MAX: u32 = 1_024;

/// Longest time for which the audit trail is kept: ten years.
const AUDIT_DAYS_MAX: u32 = 3_650;

/// What one layer says.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Layer {
    pub(crate) listen: Option<String>,
    pub(crate) data: Option<PathBuf>,
    pub(crate) store: Option<StoreText>,
    pub(crate) store_schema: Option<String>,
    pub(crate) store_connections: Option<u32>,
    pub(crate) store_transaction_pooling: Option<bool>,
    pub(crate) store_ca: Option<PathBuf>,
    pub(crate) durability: Option<String>,
    pub(crate) auto_create: Option<bool>,
    pub(crate) log_format: Option<LogFormat>,
    pub(crate) log_level: Option<String>,
    pub(crate) lease_timeout_ms: Option<u64>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) requeue_batch_size: Option<u32>,
    pub(crate) overdue_check_interval_ms: Option<u64>,
    pub(crate) restart_grace_ms: Option<u64>,
    pub(crate) polls_max: Option<u32>,
    pub(crate) otlp_endpoint: Option<String>,
    pub(crate) trace_ratio: Option<f64>,
    pub(crate) workers: Option<u32>,
    pub(crate) bootstrap_key_file: Option<PathBuf>,
    pub(crate) audit_days: Option<u32>,
    pub(crate) tls_cert: Option<PathBuf>,
    pub(crate) tls_key: Option<PathBuf>,
    pub(crate) allowed_hosts: Option<Vec<String>>,
    pub(crate) connections_max: Option<u32>,
    pub(crate) connections_per_address_max: Option<u32>,
    pub(crate) insecure_without_tls: Option<bool>,
    pub(crate) insecure_without_keys: Option<bool>,
}

impl Layer {
    /// This layer over another.
    pub(crate) fn over(self, below: Self) -> Self {
        Self {
            listen: self.listen.or(below.listen),
            data: self.data.or(below.data),
            store: self.store.or(below.store),
            store_schema: self.store_schema.or(below.store_schema),
            store_connections: self.store_connections.or(below.store_connections),
            store_transaction_pooling: self.store_transaction_pooling.or(below.store_transaction_pooling),
            store_ca: self.store_ca.or(below.store_ca),
            durability: self.durability.or(below.durability),
            auto_create: self.auto_create.or(below.auto_create),
            log_format: self.log_format.or(below.log_format),
            log_level: self.log_level.or(below.log_level),
            lease_timeout_ms: self.lease_timeout_ms.or(below.lease_timeout_ms),
            max_attempts: self.max_attempts.or(below.max_attempts),
            requeue_batch_size: self.requeue_batch_size.or(below.requeue_batch_size),
            overdue_check_interval_ms: self.overdue_check_interval_ms.or(below.overdue_check_interval_ms),
            restart_grace_ms: self.restart_grace_ms.or(below.restart_grace_ms),
            polls_max: self.polls_max.or(below.polls_max),
            otlp_endpoint: self.otlp_endpoint.or(below.otlp_endpoint),
            trace_ratio: self.trace_ratio.or(below.trace_ratio),
            workers: self.workers.or(below.workers),
            bootstrap_key_file: self.bootstrap_key_file.or(below.bootstrap_key_file),
            audit_days: self.audit_days.or(below.audit_days),
            tls_cert: self.tls_cert.or(below.tls_cert),
            tls_key: self.tls_key.or(below.tls_key),
            allowed_hosts: self.allowed_hosts.or(below.allowed_hosts),
            connections_max: self.connections_max.or(below.connections_max),
            connections_per_address_max: self
                .connections_per_address_max
                .or(below.connections_per_address_max),
            insecure_without_tls: self.insecure_without_tls.or(below.insecure_without_tls),
            insecure_without_keys: self.insecure_without_keys.or(below.insecure_without_keys),
        }
    }

    fn file(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        Self::written(&text).map_err(|error| anyhow!("{}: {error}", path.display()))
    }

    /// What the text of a file says. An error names line and column, and does not repeat the line: there may be a password
    /// in it.
    pub(crate) fn written(text: &str) -> anyhow::Result<Self> {
        toml::from_str(text).map_err(|error| anyhow!(misplaced(text, &error)))
    }

    /// What the environment says, by `variable`.
    pub(crate) fn environment(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let named = |name: &str, alias: Option<&str>| {
            let own = format!("REDRIVE_{name}");
            let found = variable(&own).map(|value| (own, value));
            found.or_else(|| alias.and_then(|alias| Some((alias.to_owned(), variable(alias)?))))
        };
        let seconds = named("", Some("ACK_TIMEOUT_SECONDS"));
        let lease_timeout_ms = match (named("LEASE_TIMEOUT_MS", None), seconds) {
            (Some(found), _) => Some(number(&found)?),
            (None, Some(found)) => Some(number::<u64>(&found)?.saturating_mul(1_000)),
            (None, None) => None,
        };
        let boolean = |name| named(name, None).map(|found| yes_or_no(&found)).transpose();
        let integer = |name, alias| named(name, alias).map(|found| number(&found)).transpose();
        let long = |name, alias| named(name, alias).map(|found| number(&found)).transpose();
        Ok(Self {
            listen: named("LISTEN", None).map(|(_, value)| value),
            data: named("DATA", None).map(|(_, value)| value.into()),
            store: named("STORE", None).map(|(_, value)| value.parse()).transpose()?,
            store_schema: named("STORE_SCHEMA", None).map(|(_, value)| value),
            store_connections: integer("STORE_CONNECTIONS", None)?,
            store_transaction_pooling: boolean("STORE_TRANSACTION_POOLING")?,
            store_ca: named("STORE_CA", None).map(|(_, value)| value.into()),
            durability: named("DURABILITY", None).map(|(_, value)| value),
            auto_create: boolean("AUTO_CREATE")?,
            log_format: named("LOG_FORMAT", None).map(|found| word(&found)).transpose()?,
            log_level: named("LOG_LEVEL", None).map(|(_, value)| value),
            lease_timeout_ms,
            max_attempts: integer("MAX_ATTEMPTS", Some("MAX_ATTEMPTS"))?,
            requeue_batch_size: integer("REQUEUE_BATCH_SIZE", Some("REQUEUE_BATCH_SIZE"))?,
            overdue_check_interval_ms: long("OVERDUE_CHECK_INTERVAL_MS", Some("OVERDUE_CHECK_INTERVAL_MS"))?,
            restart_grace_ms: long("RESTART_GRACE_MS", None)?,
            polls_max: integer("POLLS_MAX", None)?,
            otlp_endpoint: named("OTLP_ENDPOINT", Some("OTEL_EXPORTER_OTLP_ENDPOINT"))
                .map(|(_, value)| value),
            trace_ratio: named("TRACE_RATIO", None).map(|found| fraction(&found)).transpose()?,
            workers: integer("WORKERS", None)?,
            bootstrap_key_file: named("BOOTSTRAP_KEY_FILE", None).map(|(_, value)| value.into()),
            audit_days: integer("AUDIT_DAYS", None)?,
            tls_cert: named("TLS_CERT", None).map(|(_, value)| value.into()),
            tls_key: named("TLS_KEY", None).map(|(_, value)| value.into()),
            allowed_hosts: named("ALLOWED_HOSTS", None)
                .map(|(_, value)| value.split(',').map(|name| name.trim().to_owned()).collect()),
            connections_max: integer("CONNECTIONS_MAX", None)?,
            connections_per_address_max: integer("CONNECTIONS_PER_ADDRESS_MAX", None)?,
            insecure_without_tls: boolean("INSECURE_WITHOUT_TLS")?,
            insecure_without_keys: boolean("INSECURE_WITHOUT_KEYS")?,
        })
    }
}

/// What is wrong in a file of TOML, and where. The line is not repeated.
pub(crate) fn misplaced(text: &str, error: &toml::de::Error) -> String {
    let at = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let (line, column) =
        (at.matches('\n').count() + 1, at.chars().rev().take_while(|c| *c != '\n').count() + 1);
    format!("line {line}, column {column}: {}", error.message())
}

type Found = (String, String);

fn number<T: std::str::FromStr>((name, value): &Found) -> anyhow::Result<T> {
    value.parse().map_err(|_| anyhow!("{name}: `{value}` is no whole number, or too large"))
}

fn fraction((name, value): &Found) -> anyhow::Result<f64> {
    value.parse().map_err(|_| anyhow!("{name}: `{value}` is no number"))
}

fn yes_or_no((name, value): &Found) -> anyhow::Result<bool> {
    value.parse().map_err(|_| anyhow!("{name}: `{value}` must be true or false"))
}

fn word<T: clap::ValueEnum>((name, value): &Found) -> anyhow::Result<T> {
    T::from_str(value, false).map_err(|_| {
        let words = T::value_variants().iter().filter_map(T::to_possible_value);
        let words: Vec<String> = words.map(|word| word.get_name().to_owned()).collect();
        anyhow!("{name}: `{value}` must be one of {}", words.join(", "))
    })
}

/// What the server is started with.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    pub(crate) data: PathBuf,
    pub(crate) store: StoreChoice,
    pub(crate) log_format: LogFormat,
    pub(crate) log_level: String,
    pub(crate) restart_grace: Millis,
    /// Threads that serve; the store's writer has one of its own.
    pub(crate) workers: usize,
    pub(crate) broker: BrokerConfig,
    pub(crate) traces: Option<TraceTarget>,
    /// The key that may do everything.
    pub(crate) bootstrap: Option<Token>,
    pub(crate) port: PortSettings,
}

/// Where traces go, and how many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceTarget {
    pub(crate) endpoint: String,
    pub(crate) ratio: TraceRatio,
}

impl TraceTarget {
    /// An endpoint that is empty is none, as OpenTelemetry has it.
    fn of(endpoint: Option<String>, ratio: Option<f64>) -> anyhow::Result<Option<Self>> {
        let ratio = ratio.map_or(Some(TraceRatio::ALL), TraceRatio::new);
        let ratio = ratio.ok_or_else(|| anyhow!("trace_ratio: must lie between 0 and 1"))?;
        let Some(endpoint) = endpoint.filter(|endpoint| !endpoint.is_empty()) else { return Ok(None) };
        if !endpoint.starts_with("http://") {
            bail!(
                "otlp_endpoint: `{endpoint}` must be where a collector takes OTLP over gRPC without TLS, such as \
                 http://127.0.0.1:4317"
            );
        }
        Ok(Some(Self { endpoint, ratio }))
    }
}

impl Config {
    /// Reads every layer.
    pub(crate) fn load(flags: Layer, file: Option<&Path>) -> anyhow::Result<Self> {
        let written = match file {
            Some(path) => Layer::file(path)?,
            None if Path::new(FILE).exists() => Layer::file(Path::new(FILE))?,
            None => Layer::default(),
        };
        let variable = |name: &str| std::env::var(name).ok();
        let layer = flags.over(Layer::environment(variable)?.over(written));
        let bootstrap = key::bootstrap(variable(key::BOOTSTRAP), layer.bootstrap_key_file.as_deref())?;
        Ok(Self { bootstrap, ..Self::of(layer)? })
    }

    /// What the layers make together, where it is right.
    pub(crate) fn of(layer: Layer) -> anyhow::Result<Self> {
        let port = PortSettings::of(&layer)?;
        let store = StoreChoice::of(&layer)?;
        let listen = layer.listen.unwrap_or_else(|| "127.0.0.1:7400".to_owned());
        let listen: SocketAddr = listen.parse().map_err(|_| {
            anyhow!("listen: `{listen}` must be an address and a port, such as 127.0.0.1:7400")
        })?;
        let mut defaults = QueueSettings::default();
        if let Some(ms) = layer.lease_timeout_ms {
            defaults.lease_timeout = Millis::new(ms);
        }
        if let Some(max) = layer.max_attempts {
            let max = NonZeroU32::new(max).ok_or_else(|| anyhow!("max_attempts: must be at least 1"))?;
            defaults.retry.max_attempts = Some(max);
        }
        defaults.check().map_err(|invalid| anyhow!("{invalid}"))?;
        let usual = BrokerConfig::default();
        let requeue_batch_size = match layer.requeue_batch_size {
            Some(size) => Limit::new(size as usize)
                .map_err(|_| anyhow!("requeue_batch_size: must lie between 1 and 1000"))?,
            None => usual.requeue_batch_size,
        };
        let overdue_check_interval =
            layer.overdue_check_interval_ms.map_or(usual.overdue_check_interval, Millis::new);
        if overdue_check_interval < Millis::new(10) {
            bail!("overdue_check_interval_ms: must be at least 10");
        }
        let broker = BrokerConfig {
            defaults,
            // Whoever can reach the loopback may create queues by using them; elsewhere it must be asked for.
            auto_create: layer.auto_create.unwrap_or_else(|| listen.ip().is_loopback()),
            overdue_check_interval,
            requeue_batch_size,
            audit_kept: match layer.audit_days {
                Some(days) if !(1..=AUDIT_DAYS_MAX).contains(&days) => {
                    bail!("audit_days: must lie between 1 and {AUDIT_DAYS_MAX}")
                }
                Some(days) => Millis::from_days(u64::from(days)),
                None => usual.audit_kept,
            },
            polls_max: layer.polls_max.map_or(usual.polls_max, |max| max as usize),
            ..usual
        };
        Ok(Self {
            listen,
            data: layer.data.unwrap_or_else(|| "redrive-data".into()),
            store,
            log_format: layer.log_format.unwrap_or(LogFormat::Human),
            log_level: layer.log_level.unwrap_or_else(|| "info".to_owned()),
            restart_grace: layer.restart_grace_ms.map_or(Millis::from_secs(5), Millis::new),
            workers: match layer.workers {
                Some(workers) if !(1..=WORKERS_MAX).contains(&workers) => {
                    bail!("workers: must lie between 1 and {WORKERS_MAX}")
                }
                Some(workers) => workers as usize,
                None => workers(),
            },
            broker,
            traces: TraceTarget::of(layer.otlp_endpoint, layer.trace_ratio)?,
            bootstrap: None,
            port,
        })
    }
}

/// Threads that serve where nothing is said: one processor is the writer's, and threads that take processors from each
/// other cost more than they do.
pub(crate) fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |all| (all.get() - 1).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> anyhow::Result<Layer> {
        Layer::environment(|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn flags_win_over_the_environment_and_that_over_the_file() {
        let file: Layer =
            toml::from_str("max_attempts = 1\nlog_level = \"debug\"\nlisten = \"127.0.0.1:1\"").unwrap();
        let environment =
            environment(&[("REDRIVE_MAX_ATTEMPTS", "2"), ("REDRIVE_LISTEN", "127.0.0.1:2")]).unwrap();
        let flags = Layer { listen: Some("127.0.0.1:3".to_owned()), ..Layer::default() };
        let config = Config::of(flags.over(environment.over(file))).unwrap();
        assert_eq!(config.listen.port(), 3);
        assert_eq!(config.broker.defaults.retry.max_attempts, NonZeroU32::new(2));
        assert_eq!(config.log_level, "debug");
    }

    #[test]
    fn the_names_of_other_systems_are_honoured() {
        let pairs = [
            ("ACK_TIMEOUT_SECONDS", "45"),
            ("MAX_ATTEMPTS", "7"),
            ("REQUEUE_BATCH_SIZE", "10"),
            ("OVERDUE_CHECK_INTERVAL_MS", "250"),
        ];
        let config = Config::of(environment(&pairs).unwrap()).unwrap();
        assert_eq!(config.broker.defaults.lease_timeout, Millis::from_secs(45));
        assert_eq!(config.broker.defaults.retry.max_attempts, NonZeroU32::new(7));
        assert_eq!(config.broker.requeue_batch_size.get(), 10);
        assert_eq!(config.broker.overdue_check_interval, Millis::new(250));
        let both = [("ACK_TIMEOUT_SECONDS", "45"), ("REDRIVE_LEASE_TIMEOUT_MS", "5")];
        assert_eq!(environment(&both).unwrap().lease_timeout_ms, Some(5), "our own name wins");
    }

    #[test]
    fn a_wrong_value_is_named() {
        let wrong = |pairs: &[(&str, &str)]| match environment(pairs) {
            Ok(layer) => Config::of(layer).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        for (name, value, said) in [
            ("REDRIVE_LISTEN", "here", "listen: `here`"),
            ("MAX_ATTEMPTS", "many", "MAX_ATTEMPTS: `many`"),
            ("MAX_ATTEMPTS", "0", "max_attempts"),
            ("REDRIVE_STORE", "tape", "store: `tape` must be embedded, memory, or postgres://"),
            ("REDRIVE_STORE", "postgres://me:secret@here:x/db", "store: must be postgres://"),
            ("REDRIVE_STORE_CONNECTIONS", "few", "REDRIVE_STORE_CONNECTIONS: `few`"),
            ("REDRIVE_DURABILITY", "interval:0", "durability: `interval:0`"),
            ("REDRIVE_AUTO_CREATE", "yes", "REDRIVE_AUTO_CREATE: `yes`"),
            ("REQUEUE_BATCH_SIZE", "5000", "requeue_batch_size"),
            ("OVERDUE_CHECK_INTERVAL_MS", "1", "overdue_check_interval_ms"),
            ("ACK_TIMEOUT_SECONDS", "99999999", "lease_timeout"),
            ("REDRIVE_OTLP_ENDPOINT", "here:4317", "otlp_endpoint: `here:4317`"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://here", "otlp_endpoint: `https://here`"),
            ("REDRIVE_TRACE_RATIO", "half", "REDRIVE_TRACE_RATIO: `half`"),
            ("REDRIVE_TRACE_RATIO", "1.5", "trace_ratio"),
            ("REDRIVE_TRACE_RATIO", "NaN", "trace_ratio"),
        ] {
            let message = wrong(&[(name, value)]);
            assert!(message.contains(said), "{name}={value}: {message}");
        }
        let said = |text| Layer::written(text).unwrap_err().to_string();
        assert!(said("workers = 1\nlisen = 1").starts_with("line 2, column 1: unknown field `lisen`"));
        let unended = said("store = \"postgres://me:secret@here/db\nlisten = \"x\"");
        assert!(unended.starts_with("line 1") && !unended.contains("secret"), "{unended}");
        assert!(toml::from_str::<Layer>("lisen = 1").unwrap_err().to_string().contains("lisen"));
    }

    #[test]
    fn traces_go_nowhere_unless_somebody_says_where() {
        let of = |pairs: &[(&str, &str)]| Config::of(environment(pairs).unwrap()).unwrap().traces;
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]), None);
        let common = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:1");
        assert_eq!(of(&[common]).unwrap().endpoint, "http://a:1");
        let own = of(&[common, ("REDRIVE_OTLP_ENDPOINT", "http://b:2"), ("REDRIVE_TRACE_RATIO", "0.25")]);
        let ratio = TraceRatio::new(0.25).unwrap();
        assert_eq!(own, Some(TraceTarget { endpoint: "http://b:2".to_owned(), ratio }));
    }

    #[test]
    fn queues_come_by_themselves_only_on_loopback() {
        let of =
            |listen: &str| Config::of(Layer { listen: Some(listen.to_owned()), ..Layer::default() }).unwrap();
        assert!(of("127.0.0.1:0").broker.auto_create && of("[::1]:0").broker.auto_create);
        assert!(!of("0.0.0.0:0").broker.auto_create);
    }
}
