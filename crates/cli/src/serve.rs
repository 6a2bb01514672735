//! `redrive serve`: the server, from its start to its end.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use redrive_broker::{Access, Background, Broker, BrokerConfig, Clock, Gate, TraceConfig, has_keys};
use redrive_bus::{Bus, BusBackground};
use redrive_core::receipt::ReceiptKey;
use redrive_server::{grpc, http};
use redrive_store::Store;
use redrive_store_memory::MemoryStore;
use redrive_store_postgres::PostgresStore;
use redrive_store_redis::RedisStore;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use crate::clock::{SharedClock, TimeSource, WallClock};
use crate::config::{Config, Layer, Sources};
use crate::logs::{self, LogFormat};
use crate::port::{self, PortArguments};
use crate::store::{StoreArguments, StoreChoice};
use crate::system;
use crate::traces::Exporter;
use crate::webhooks::WebhookArguments;

/// How long requests that are under way may take when the server ends.
const DRAIN: Duration = Duration::from_secs(8);
/// How long the last traces may take then.
const FLUSH: Duration = Duration::from_secs(3);
/// How long these may take together, with the deliveries that are under way.
const END: Duration = Duration::from_secs(9);

/// Runs the server.
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// The address and the port, 127.0.0.1:7400 where nothing is said; port 0 takes a free one.
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// The path below which the API and the dashboard are found, such as `/redrive`; the root where nothing is said.
    #[arg(long, value_name = "PATH")]
    base_path: Option<String>,
    /// The directory of the embedded store, `redrive-data` where nothing is said.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Whether a queue comes into being by the first message for it; true on loopback where nothing is said.
    #[arg(long, value_name = "BOOL")]
    auto_create: Option<bool>,
    /// How log lines look.
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<LogFormat>,
    /// Which log lines are written, such as `info` or `warn,redrive=debug`.
    #[arg(long, value_name = "FILTER")]
    log_level: Option<String>,
    /// Where traces go: a collector that takes OTLP over gRPC, such as `http://127.0.0.1:4317`.
    /// Nowhere where nothing is said.
    #[arg(long, value_name = "URL")]
    otlp_endpoint: Option<String>,
    /// How many of the traces that begin here are recorded, from 0 to 1; all where nothing is said.
    #[arg(long, value_name = "RATIO")]
    trace_ratio: Option<f64>,
    /// Tells who shows no API key how much happens, where one is needed: counts, and no names.
    #[arg(long)]
    open_reading: bool,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    port: PortArguments,
    #[command(flatten)]
    webhooks: WebhookArguments,
    /// Takes the time from `POST /test/clock` instead of the machine.
    #[cfg(feature = "test-clock")]
    #[arg(long, hide = true)]
    test_clock: bool,
    /// The file with the configuration; `redrive.toml` where there is one and nothing is said.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ServeArguments {
    #[cfg(feature = "test-clock")]
    fn time(&self) -> TimeSource {
        if self.test_clock {
            TimeSource::Test(crate::clock::test::TestClock::new())
        } else {
            TimeSource::Machine
        }
    }

    #[cfg(not(feature = "test-clock"))]
    #[expect(clippy::unused_self, reason = "a build for tests has a flag for it")]
    fn time(&self) -> TimeSource {
        TimeSource::Machine
    }

    /// What these flags, the environment and the file say.
    pub(crate) fn sources(self) -> anyhow::Result<Sources> {
        let layer = Layer {
            listen: self.listen,
            base_path: self.base_path,
            data: self.data,
            auto_create: self.auto_create,
            log_format: self.log_format,
            log_level: self.log_level,
            otlp_endpoint: self.otlp_endpoint,
            trace_ratio: self.trace_ratio,
            open_reading: self.open_reading.then_some(true),
            ..self.webhooks.over(self.store.over(self.port.layer()))
        };
        Sources::read(layer, self.config.as_deref())
    }
}

/// Runs the server until it is told to end.
pub(crate) fn run(arguments: ServeArguments) -> anyhow::Result<()> {
    let time = arguments.time();
    let config = arguments.sources()?.config()?;
    logs::start(config.log_format, &config.log_level)?;
    let files = system::allow_many_files();
    let config = Config { port: config.port.within(files), ..config };
    system::use_small_pages();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.workers)
        .enable_all()
        .build()
        .context("starting")?;
    let served = runtime.block_on(serve(config, time));
    // Connections that nobody reads from any more must not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    served
}

async fn serve(config: Config, time: TimeSource) -> anyhow::Result<()> {
    let traces = config.traces.as_ref().map(|traces| Exporter::start(&traces.endpoint)).transpose()?;
    let (store, clock) = open(&config, &time).await?;
    let name = store.capabilities().name;
    let settings = BrokerConfig { traces: traced(&config, traces.as_ref()), ..config.broker.clone() };
    let (broker, background) = Broker::start(store, clock, settings).await.context("starting")?;
    let gate =
        Gate::new(broker.clone(), access(&config, &broker).await?).await.context("reading the API keys")?;
    let port = config.port.open(config.listen, gate.needs_keys())?;
    let address = port.address().context("listening")?;
    let (bus, deliveries) =
        Bus::start(broker.clone(), config.webhooks.bus(address)?).await.context("starting the event bus")?;
    let scheme = if port.tls().is_some() { "https" } else { "http" };
    // Whoever hears that it is ready may tell it to end at once.
    let told = Told::listen()?;
    tracing::info!(%address, store = name, "redrive is ready");
    // Nobody may be reading; that is no reason to end.
    let below = config.base_path.prefix();
    drop(writeln!(std::io::stdout(), "redrive is ready on {scheme}://{address}{below}"));
    let api = http::Api::new(gate.clone(), bus.clone()).on_port(port.metrics()).below(config.base_path);
    let app = grpc::add_to(time.control(http::router(api), &broker), gate.clone(), bus).await;
    let ending = gate.clone();
    let tls = port.tls().cloned();
    let mut serving = tokio::spawn(async move { port.serve(app, ending.stopped()).await });
    tokio::select! {
        () = told.wait() => {}
        renewing = renew(tls) => renewing?,
        ended = &mut serving => {
            ended.context("serving")?;
            anyhow::bail!("the port was closed though nobody said so");
        }
    }
    end(background, deliveries, serving, traces, &gate).await
}

/// Who is let in: whoever shows a key, once there is one.
async fn access(config: &Config, broker: &Broker) -> anyhow::Result<Access> {
    if config.bootstrap.is_some() || has_keys(broker).await.context("reading the API keys")? {
        return Ok(Access::Keys { bootstrap: config.bootstrap.clone() });
    }
    Ok(Access::Anyone)
}

fn traced(config: &Config, exporter: Option<&Exporter>) -> Option<TraceConfig> {
    let (target, exporter) = (config.traces.as_ref()?, exporter?);
    Some(TraceConfig { ratio: target.ratio, ..TraceConfig::new(exporter.tracing()) })
}

/// Stops handing out, lets what is under way finish, and ends.
async fn end(
    background: Background,
    deliveries: BusBackground,
    serving: tokio::task::JoinHandle<()>,
    traces: Option<Exporter>,
    gate: &Gate,
) -> anyhow::Result<()> {
    let end = Instant::now() + END;
    tracing::info!("redrive ends: nothing more is handed out, what is under way is finished");
    deliveries.stop().await;
    background.stop().await;
    let left = end.saturating_duration_since(Instant::now());
    let served = tokio::time::timeout(left.min(DRAIN), serving).await;
    if let Err(error) = gate.flush_audit().await {
        tracing::error!(%error, "the last refusals could not be written down");
    }
    if let Some(traces) = traces {
        traces.flush(end.saturating_duration_since(Instant::now()).min(FLUSH)).await;
    }
    if let Ok(served) = served {
        served.context("serving")?;
    } else {
        tracing::warn!("some requests did not finish in time and were cut off");
    }
    tracing::info!("redrive has ended");
    Ok(())
}

/// Keeps the certificate fresh, where there is one. Ends only by an error.
async fn renew(tls: Option<redrive_server::Tls>) -> anyhow::Result<()> {
    match tls {
        Some(tls) => port::renew(tls).await,
        None => std::future::pending().await,
    }
}

/// What tells the server to end. Until there is one, the process just ends.
struct Told {
    terminate: Signal,
    interrupt: Signal,
}

impl Told {
    fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("waiting for signals");
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    async fn wait(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

type Opened = (Arc<dyn Store>, Arc<dyn Clock>);

async fn open(config: &Config, time: &TimeSource) -> anyhow::Result<Opened> {
    match &config.store {
        StoreChoice::Embedded(durability) => {
            let options = redrive_store_embedded::Options {
                defaults: config.broker.defaults.clone(),
                durability: *durability,
                restart_grace: config.restart_grace,
                ..redrive_store_embedded::Options::default()
            };
            let opened = time.open_embedded(&config.data, options);
            let (store, clock) = opened.with_context(|| format!("opening {}", config.data.display()))?;
            Ok((Arc::new(store), clock))
        }
        StoreChoice::Memory => {
            let mut options = redrive_store_memory::Options::new(ReceiptKey::new(fresh_key()?));
            options.defaults = config.broker.defaults.clone();
            Ok((Arc::new(MemoryStore::new(options)), Arc::new(WallClock)))
        }
        StoreChoice::Postgres(options) => {
            let mut options = redrive_store_postgres::Options::clone(options);
            options.defaults = config.broker.defaults.clone();
            let place = options.place()?;
            let opened = PostgresStore::open(options, fresh_key()?).await;
            // The error has its causes in its words.
            let store = opened.map_err(|error| anyhow::anyhow!("opening PostgreSQL at {place}: {error}"))?;
            let clock = store.clock();
            Ok((Arc::new(store), Arc::new(SharedClock(move || clock.now()))))
        }
        StoreChoice::Redis(options) => {
            let mut options = redrive_store_redis::Options::clone(options);
            options.defaults = config.broker.defaults.clone();
            let place = options.place()?;
            let opened = RedisStore::open(options, fresh_key()?).await;
            let store = opened.map_err(|error| anyhow::anyhow!("opening Redis at {place}: {error}"))?;
            let clock = store.clock();
            Ok((Arc::new(store), Arc::new(SharedClock(move || clock.now()))))
        }
    }
}

/// A key of receipts, for a store that has none yet.
fn fresh_key() -> anyhow::Result<[u8; 32]> {
    let mut key = [0; 32];
    rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty()).context("a receipt key")?;
    Ok(key)
}
