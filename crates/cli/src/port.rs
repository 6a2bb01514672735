//! The port as an operator sets it: how many may connect, under which names, and with which certificate.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use redrive_broker::pause;
use redrive_core::time::Millis;
use redrive_server::{ConnectionLimits, Port, PortConfig, Tls};
use tokio::signal::unix::{SignalKind, signal};

use crate::config::{Layer, Wrong};
use crate::exposure::{self, Guard};

/// Files that the store and the process itself may have open beside the connections.
pub(crate) const OTHER_FILES: u64 = 256;
/// How often it is looked whether the certificate was renewed.
const RENEWED: Millis = Millis::from_secs(10);

/// The flags of the port.
#[derive(Debug, Args)]
pub(crate) struct PortArguments {
    /// The file with the certificate and those above it, as PEM. With it, the server speaks TLS only.
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The file with the key of the certificate, as PEM.
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Names by which the server may be called while it has no API keys, beside IP addresses and localhost.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    allowed_hosts: Option<Vec<String>>,
    /// Lets the server be reached from other machines without TLS.
    #[arg(long)]
    insecure_without_tls: bool,
    /// Lets the server be reached from other machines without API keys.
    #[arg(long)]
    insecure_without_keys: bool,
}

impl PortArguments {
    /// What the flags say of the port, and nothing else.
    pub(crate) fn layer(self) -> Layer {
        Layer {
            tls_cert: self.tls_cert,
            tls_key: self.tls_key,
            allowed_hosts: self.allowed_hosts,
            insecure_without_tls: self.insecure_without_tls.then_some(true),
            insecure_without_keys: self.insecure_without_keys.then_some(true),
            ..Layer::default()
        }
    }
}

/// How the port is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PortSettings {
    /// The files of the certificate and of its key.
    tls: Option<(PathBuf, PathBuf)>,
    connections: ConnectionLimits,
    allowed_hosts: Vec<String>,
    insecure_without_tls: bool,
    insecure_without_keys: bool,
}

impl PortSettings {
    pub(crate) fn of(layer: &Layer) -> anyhow::Result<Self> {
        let tls = match (&layer.tls_cert, &layer.tls_key) {
            (Some(cert), Some(key)) => Some((cert.clone(), key.clone())),
            (None, None) => None,
            (Some(_), None) => return Err(Wrong::value("tls_cert", "needs tls_key beside it")),
            (None, Some(_)) => return Err(Wrong::value("tls_key", "needs tls_cert beside it")),
        };
        let usual = ConnectionLimits::default();
        let connections = ConnectionLimits {
            max: layer.connections_max.unwrap_or(usual.max),
            per_address_max: layer.connections_per_address_max,
        };
        if connections.max == 0 {
            return Err(Wrong::value("connections_max", "must be at least 1"));
        }
        if connections.per_address_max == Some(0) {
            return Err(Wrong::value("connections_per_address_max", "must be at least 1"));
        }
        Ok(Self {
            tls,
            connections,
            allowed_hosts: layer.allowed_hosts.clone().unwrap_or_default(),
            insecure_without_tls: layer.insecure_without_tls.unwrap_or(false),
            insecure_without_keys: layer.insecure_without_keys.unwrap_or(false),
        })
    }

    /// Most connections.
    pub(crate) fn connections_max(&self) -> u32 {
        self.connections.max
    }

    /// Whether it speaks TLS.
    pub(crate) fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// With no more connections than there can be files. A store that cannot open a file is worse than a client that is
    /// turned away.
    #[must_use]
    pub(crate) fn within(mut self, files: u64) -> Self {
        let most = u32::try_from(files.saturating_sub(OTHER_FILES).max(1)).unwrap_or(u32::MAX);
        if most < self.connections.max {
            let asked = self.connections.max;
            tracing::info!(files, asked, most, "fewer connections than there might be: each is an open file");
            self.connections.max = most;
        }
        self
    }

    /// Whether the port could be opened there; `keys` as far as is known.
    pub(crate) fn check(&self, listen: SocketAddr, keys: bool) -> anyhow::Result<()> {
        self.guarded(listen, keys)?;
        if let Some((cert, key)) = &self.tls {
            Tls::load(cert.clone(), key.clone()).map_err(|error| Wrong::value("tls_cert", error))?;
        }
        Ok(())
    }

    fn guarded(&self, listen: SocketAddr, keys: bool) -> anyhow::Result<()> {
        let tls = Guard::new(self.tls.is_some(), self.insecure_without_tls);
        exposure::check(listen, tls, Guard::new(keys, self.insecure_without_keys))
    }

    /// Opens the port, unless it could be reached by more than it is protected from.
    pub(crate) fn open(self, listen: SocketAddr, keys: bool) -> anyhow::Result<Port> {
        self.guarded(listen, keys)?;
        let tls = self.tls.map(|(cert, key)| Tls::load(cert, key)).transpose().context("TLS")?;
        let config =
            PortConfig { connections: self.connections, open: !keys, allowed_hosts: self.allowed_hosts, tls };
        Port::listen(listen, config).with_context(|| format!("listening on {listen}"))
    }
}

/// Reads the certificate again when it was renewed, or when somebody says so with SIGHUP. Never ends.
pub(crate) async fn renew(tls: Tls) -> anyhow::Result<()> {
    let mut hangup = signal(SignalKind::hangup()).context("waiting for signals")?;
    loop {
        tokio::select! {
            _ = hangup.recv() => {}
            () = pause(RENEWED) => {
                if !tls.has_changed() {
                    continue;
                }
            }
        }
        match tls.reload() {
            Ok(()) => tracing::info!("the certificate was read again"),
            Err(error) => tracing::error!(%error, "the certificate stays the old one"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(layer: &Layer) -> Result<PortSettings, String> {
        PortSettings::of(layer).map_err(|error| error.to_string())
    }

    #[test]
    fn half_a_pair_and_no_connections_at_all_are_refused() {
        let wrong = |layer: Layer| of(&layer).unwrap_err();
        let file = || Some(PathBuf::from("file.pem"));
        assert!(wrong(Layer { tls_cert: file(), ..Layer::default() }).starts_with("tls_cert:"));
        assert!(wrong(Layer { tls_key: file(), ..Layer::default() }).starts_with("tls_key:"));
        assert!(of(&Layer { tls_cert: file(), tls_key: file(), ..Layer::default() }).is_ok());
        let none = Layer { connections_max: Some(0), ..Layer::default() };
        assert!(wrong(none).starts_with("connections_max:"));
        let none = Layer { connections_per_address_max: Some(0), ..Layer::default() };
        assert!(wrong(none).starts_with("connections_per_address_max:"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_certificate_that_was_written_again_is_read_again() {
        let made = || {
            let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
            (made.cert.pem(), made.signing_key.serialize_pem())
        };
        let dir = tempfile::tempdir().unwrap();
        let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
        let write = |(chain, private): (String, String)| {
            std::fs::write(&cert, chain).unwrap();
            std::fs::write(&key, private).unwrap();
        };
        write(made());
        let tls = Tls::load(cert.clone(), key.clone()).unwrap();
        let renewing = tokio::spawn(renew(tls.clone()));
        for _ in 0..3 {
            write((String::new(), made().1));
            write(made());
            assert!(tls.has_changed());
            let looked = tokio::time::timeout(std::time::Duration::from_secs(11), async {
                while tls.has_changed() {
                    pause(Millis::new(100)).await;
                }
            });
            looked.await.expect("they are looked at every ten seconds");
        }
        renewing.abort();
    }

    #[test]
    fn there_are_no_more_connections_than_files() {
        let max = |files| of(&Layer::default()).unwrap().within(files).connections.max;
        assert_eq!((max(1_048_576), max(u64::MAX), max(20_256)), (20_000, 20_000, 20_000));
        assert_eq!((max(1_024), max(10)), (768, 1));
    }
}
