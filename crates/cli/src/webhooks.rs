//! Webhooks as an operator sets them: whether they are sent from here, whom they may call, and whom they trust.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use redrive_bus::BusConfig;
use redrive_bus::webhook::{AllowRule, Guard, WebhookConfig};
use redrive_core::time::Millis;

use crate::config::{Layer, Wrong};

/// The longest time that a webhook may take to connect.
const CONNECT_TIMEOUT_MAX: Millis = Millis::from_secs(60);

/// The flags of webhooks.
#[derive(Debug, Args)]
pub(crate) struct WebhookArguments {
    /// Whether webhooks are sent from here; true where nothing is said.
    #[arg(long, value_name = "BOOL")]
    webhooks: Option<bool>,
    /// Whom webhooks may call beyond public addresses at ports 80 and 443, such as `10.0.0.0/8:*`.
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    webhook_allow: Option<Vec<String>>,
    /// A PEM file with authorities that webhooks trust beside those of the machine.
    #[arg(long, value_name = "FILE")]
    webhook_authorities: Option<PathBuf>,
    /// How long a webhook may take to connect.
    #[arg(long, value_name = "MS")]
    webhook_connect_timeout_ms: Option<u64>,
}

impl WebhookArguments {
    /// What the flags say of webhooks, over what others say of the rest.
    pub(crate) fn over(self, below: Layer) -> Layer {
        Layer {
            webhooks: self.webhooks,
            webhook_allow: self.webhook_allow,
            webhook_authorities: self.webhook_authorities,
            webhook_connect_timeout_ms: self.webhook_connect_timeout_ms,
            ..below
        }
    }
}

/// How webhooks are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WebhookSettings {
    sent: bool,
    allowed: Vec<AllowRule>,
    authorities: Option<PathBuf>,
    connect_timeout: Millis,
}

impl WebhookSettings {
    pub(crate) fn of(layer: &Layer) -> anyhow::Result<Self> {
        let usual = WebhookConfig::default();
        let rule = |text: &String| {
            let wrong = |invalid: redrive_core::invalid::Invalid| {
                Wrong::value("webhook_allow", format!("`{text}` {}", invalid.problem))
            };
            AllowRule::parse(text).map_err(wrong)
        };
        let connect_timeout = layer.webhook_connect_timeout_ms.map_or(usual.connect_timeout, Millis::new);
        let connect_timeout = connect_timeout
            .within("webhook_connect_timeout_ms", Millis::new(1), CONNECT_TIMEOUT_MAX)
            .map_err(|invalid| Wrong::value("webhook_connect_timeout_ms", invalid.problem))?;
        Ok(Self {
            sent: layer.webhooks.unwrap_or(true),
            allowed: layer.webhook_allow.iter().flatten().map(rule).collect::<Result<_, _>>()?,
            authorities: layer.webhook_authorities.clone(),
            connect_timeout,
        })
    }

    /// What the bus is started with, where the server listens there: nobody may have it call itself.
    pub(crate) fn bus(&self, listener: SocketAddr) -> anyhow::Result<BusConfig> {
        if !self.sent {
            return Ok(BusConfig::default());
        }
        let authorities = match &self.authorities {
            Some(file) => Some(
                std::fs::read(file).with_context(|| format!("webhook_authorities: {}", file.display()))?,
            ),
            None => None,
        };
        let webhooks = WebhookConfig {
            guard: Guard::allowing(self.allowed.clone()).refusing(vec![listener]),
            connect_timeout: self.connect_timeout,
            authorities,
            ..WebhookConfig::default()
        };
        Ok(BusConfig { webhooks: Some(webhooks), ..BusConfig::default() })
    }
}
