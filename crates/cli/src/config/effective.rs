//! What the server is started with: every value checked, and in the type that its use asks for.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use redrive_broker::{BrokerConfig, TraceRatio};
use redrive_core::access::Token;
use redrive_core::queue::QueueSettings;
use redrive_core::time::Millis;
use redrive_server::BasePath;
use redrive_store::Limit;

use super::{Layer, Wrong};
use crate::logs::LogFormat;
use crate::port::PortSettings;
use crate::store::StoreChoice;
use crate::webhooks::WebhookSettings;

/// Most threads that serve.
const WORKERS_MAX: u32 = 1_024;

/// Longest time for which the audit trail is kept: ten years.
const AUDIT_DAYS_MAX: u32 = 3_650;

/// What the server is started with.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    /// Below which path the API and the page are found.
    pub(crate) base_path: BasePath,
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
    pub(crate) webhooks: WebhookSettings,
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
        let ratio = ratio.ok_or_else(|| Wrong::value("trace_ratio", "must lie between 0 and 1"))?;
        let Some(endpoint) = endpoint.filter(|endpoint| !endpoint.is_empty()) else { return Ok(None) };
        if !endpoint.starts_with("http://") {
            let must =
                "must be where a collector takes OTLP over gRPC without TLS, such as http://127.0.0.1:4317";
            return Err(Wrong::value("otlp_endpoint", format!("`{endpoint}` {must}")));
        }
        Ok(Some(Self { endpoint, ratio }))
    }
}

impl Config {
    /// What the layers make together, where it is right.
    pub(crate) fn of(layer: Layer) -> anyhow::Result<Self> {
        let layer = layer.over(Layer::defaults());
        let port = PortSettings::of(&layer)?;
        let store = StoreChoice::of(&layer)?;
        let webhooks = WebhookSettings::of(&layer)?;
        let listen = layer.listen.as_deref().unwrap_or_default();
        let listen: SocketAddr = listen.parse().map_err(|_| {
            let must = "must be an address and a port, such as 127.0.0.1:7400";
            Wrong::value("listen", format!("`{listen}` {must}"))
        })?;
        Ok(Self {
            listen,
            base_path: base_path(&layer)?,
            broker: broker(&layer, listen)?,
            data: layer.data.unwrap_or_default(),
            store,
            log_format: layer.log_format.unwrap_or(LogFormat::Human),
            log_level: layer.log_level.unwrap_or_default(),
            restart_grace: layer.restart_grace_ms.map(Millis::new).unwrap_or_default(),
            workers: match layer.workers {
                Some(workers) => within("workers", workers, WORKERS_MAX)? as usize,
                None => workers(),
            },
            traces: TraceTarget::of(layer.otlp_endpoint, layer.trace_ratio)?,
            bootstrap: None,
            port,
            webhooks,
        })
    }
}

impl Config {
    /// The layer that this was made of with everything that it leaves open: the defaults, and what follows from others.
    pub(crate) fn settled(&self, layer: Layer) -> Layer {
        let follows = Layer {
            auto_create: Some(self.broker.auto_create),
            workers: u32::try_from(self.workers).ok(),
            durability: match self.store {
                StoreChoice::Embedded(_) => Some("sync".to_owned()),
                StoreChoice::Postgres(_) => Some("local".to_owned()),
                StoreChoice::Redis(_) => Some("process".to_owned()),
                StoreChoice::Memory => None,
            },
            ..Layer::defaults()
        };
        layer.over(follows)
    }
}

fn base_path(layer: &Layer) -> anyhow::Result<BasePath> {
    let path = layer.base_path.as_deref().unwrap_or("/");
    path.parse().map_err(|invalid| Wrong::value("base_path", format!("`{path}` {invalid}")))
}

/// Refuses a number outside `1..=max`.
fn within(key: &'static str, number: u32, max: u32) -> anyhow::Result<u32> {
    let must = || Wrong::value(key, format!("must lie between 1 and {max}"));
    if (1..=max).contains(&number) { Ok(number) } else { Err(must()) }
}

/// What the broker is started with. The layer says everything that has a default.
fn broker(layer: &Layer, listen: SocketAddr) -> anyhow::Result<BrokerConfig> {
    let usual = BrokerConfig::default();
    let requeue_batch_size = layer.requeue_batch_size.map_or(Ok(usual.requeue_batch_size), |size| {
        Limit::new(size as usize)
            .map_err(|_| Wrong::value("requeue_batch_size", "must lie between 1 and 1000"))
    });
    let overdue_check_interval = Millis::new(layer.overdue_check_interval_ms.unwrap_or_default());
    if overdue_check_interval < Millis::new(10) {
        return Err(Wrong::value("overdue_check_interval_ms", "must be at least 10"));
    }
    let days = within("audit_days", layer.audit_days.unwrap_or_default(), AUDIT_DAYS_MAX)?;
    Ok(BrokerConfig {
        defaults: queue_defaults(layer)?,
        // Whoever can reach the loopback may create queues by using them; elsewhere it must be asked for.
        auto_create: layer.auto_create.unwrap_or_else(|| listen.ip().is_loopback()),
        overdue_check_interval,
        requeue_batch_size: requeue_batch_size?,
        audit_kept: Millis::from_days(u64::from(days)),
        open_reading: layer.open_reading.unwrap_or(usual.open_reading),
        polls_max: layer.polls_max.map_or(usual.polls_max, |max| max as usize),
        ..usual
    })
}

/// The settings of a queue that says nothing.
fn queue_defaults(layer: &Layer) -> anyhow::Result<QueueSettings> {
    let mut defaults = QueueSettings::default();
    defaults.lease_timeout = layer.lease_timeout_ms.map_or(defaults.lease_timeout, Millis::new);
    if let Some(max) = layer.max_attempts {
        let max = NonZeroU32::new(max).ok_or_else(|| Wrong::value("max_attempts", "must be at least 1"))?;
        defaults.retry.max_attempts = Some(max);
    }
    // Nothing else of them can be configured.
    defaults.check().map_err(|invalid| Wrong::value("lease_timeout_ms", invalid.problem))?;
    Ok(defaults)
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
            ("REDRIVE_BASE_PATH", "redrive", "base_path: `redrive` must be a path such as /redrive"),
            ("REDRIVE_BASE_PATH", "/a/../b", "base_path: `/a/../b` must be a path"),
            ("REDRIVE_BASE_PATH", "/metrics", "base_path: `/metrics` must not begin with /healthz"),
            ("MAX_ATTEMPTS", "many", "MAX_ATTEMPTS: `many`"),
            ("MAX_ATTEMPTS", "0", "max_attempts"),
            ("REDRIVE_STORE", "tape", "store: `tape` must be embedded, memory, postgres://"),
            ("REDRIVE_STORE", "redis://:secret@here:x", "store: must be redis://"),
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
            ("REDRIVE_WEBHOOKS", "on", "REDRIVE_WEBHOOKS: `on`"),
            ("REDRIVE_WEBHOOK_ALLOW", "10.0.0.0/8, 10.0.0.1/8", "webhook_allow: `10.0.0.1/8`"),
            ("REDRIVE_WEBHOOK_CONNECT_TIMEOUT_MS", "0", "webhook_connect_timeout_ms"),
        ] {
            let message = wrong(&[(name, value)]);
            assert!(message.contains(said), "{name}={value}: {message}");
        }
    }

    #[test]
    fn what_is_said_where_nothing_is_said_are_the_defaults() {
        let of = |layer: Layer| format!("{:?}", Config::of(layer).unwrap());
        assert_eq!(of(Layer::default()), of(Layer::defaults()));
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
