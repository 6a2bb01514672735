//! Webhooks: how they are called, and how a receiver sees that one is real.

use std::time::{Duration, SystemTime};

use redrive_bus::webhook::{Guard, TOLERANCE, WebhookConfig};

use crate::convert;
use crate::error::Error;

pub use redrive_bus::webhook::{AllowRule, Signed, SigningSecret, Unverified};

/// How webhooks are called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebhookOptions {
    /// Who may be called beyond public addresses: `10.0.0.0/8`, `10.0.0.7:8080`, `intranet.example.com:8443`. A rule without a
    /// port is for 80 and 443, `:*` is for any port.
    pub allow: Vec<String>,
    /// Authorities that are trusted beside the machine's own, as PEM.
    pub authorities: Option<Vec<u8>>,
    /// How long a connection may take, with the lookup and TLS; ten seconds, where nothing is said.
    pub connect_timeout: Option<Duration>,
}

impl WebhookOptions {
    /// One more that may be called, such as `127.0.0.1:*`.
    #[must_use]
    pub fn allow(mut self, rule: impl Into<String>) -> Self {
        self.allow.push(rule.into());
        self
    }

    pub(crate) fn into_config(self) -> Result<WebhookConfig, Error> {
        let rules = self.allow.iter().map(|rule| AllowRule::parse(rule)).collect::<Result<Vec<_>, _>>()?;
        let mut config = WebhookConfig {
            guard: Guard::allowing(rules),
            authorities: self.authorities,
            ..WebhookConfig::default()
        };
        if let Some(time) = self.connect_timeout {
            config.connect_timeout = convert::millis(time);
        }
        Ok(config)
    }
}

/// Whether one of the secrets has signed a request, no more than five minutes from `now`. It says nothing about whether the
/// same request came before: its id is the event's, at every attempt.
pub fn verify(secrets: &[SigningSecret], request: &Signed<'_>, now: SystemTime) -> Result<(), Unverified> {
    redrive_bus::webhook::verify(secrets, request, convert::timestamp(now), TOLERANCE)
}
