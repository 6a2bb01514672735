//! The gate: every API asks here who a caller is and what the caller may do, and reaches the broker no other way.
//!
//! [`Gate::caller`] tells who it is. [`Caller::may`] is the one function that authorises; it hands the broker out.
//! [`Caller::act`] does the same for what operators do, and writes it down with what came of it. A handler that asks
//! neither has no broker to call, so a route that somebody forgot to guard does not compile. [`Gate::watcher`] lets in, where
//! the operator wants it, who shows nothing: to counts, which have no names in them.

mod acts;
mod audit;
mod caller;
mod counts;
mod keys;
mod manage;
mod record;

pub use audit::{About, Act, AuditEntry, Who};
pub use caller::{Caller, Cut, Fault};
pub use counts::{Counted, Counts, Stranger, ToldCount, Watcher};
pub use keys::Consuming;
pub use manage::NewKey;
pub use record::{ApiKey, Quotas};

use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redrive_core::access::{Grants, KeyName, Token};
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{Capabilities, EntryKind, Limit};
use thiserror::Error;

use crate::broker::Broker;
use crate::clock::pause;
use crate::config::BrokerConfig;
use crate::error::BrokerError;
use audit::Audit;
use counts::Places;
use keys::{KEPT_NOWHERE, Keys};
use record::Kept;

/// After how many rounds what other instances did to keys is looked for: 15 s. They tell it at once; a stream under a key
/// that was revoked by one that ended before it told goes on for no longer than that.
const REFRESH_ROUNDS: u64 = 3;
/// By how much the clocks of instances may differ.
const CLOCKS_DIFFER: Millis = Millis::from_secs(60);
/// After how many rounds old entries of the trail are looked for: an hour.
const TRIM_ROUNDS: u64 = 720;

/// Why a caller was not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unauthenticated {
    /// Nothing was shown.
    #[error("an API key is needed: `Authorization: Bearer rdk_…`")]
    Missing,
    /// What was shown is no key of this server.
    #[error("this is not an API key of this server")]
    Invalid,
    /// The key, or this secret of it, has come to its end.
    #[error("the API key has expired")]
    Expired,
    /// Somebody ended it.
    #[error("the API key was revoked")]
    Revoked,
}

impl Unauthenticated {
    /// The stable word for it.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Missing => "KEY_MISSING",
            Self::Invalid => "KEY_INVALID",
            Self::Expired => "KEY_EXPIRED",
            Self::Revoked => "KEY_REVOKED",
        }
    }
}

/// Who is let in.
#[derive(Debug, Clone)]
pub enum Access {
    /// Whoever can reach the server, to everything.
    Anyone,
    /// Who shows a key. The one from the environment may do everything, and is kept nowhere.
    Keys {
        /// The key from the environment.
        bootstrap: Option<Token>,
    },
}

struct Shared {
    broker: Broker,
    keys: Keys,
    /// Whether anyone is let in. It ends when another instance on the same store makes the first key.
    anyone: AtomicBool,
    audit: Audit,
    /// For those who read without a key.
    places: Places,
    /// Held by who counts something and adds to it, where there is a quota.
    counting: tokio::sync::Mutex<()>,
}

/// Where every API asks.
#[derive(Clone)]
pub struct Gate(Arc<Shared>);

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("keys", &self.needs_keys()).finish_non_exhaustive()
    }
}

/// Whether a store keeps any key, be it revoked: such a store is never served without keys by accident.
pub async fn has_keys(broker: &Broker) -> Result<bool, BrokerError> {
    Ok(!broker.store.registry_list(EntryKind::ApiKey, None, Limit::ONE).await?.is_empty())
}

impl Gate {
    /// A gate before a broker.
    pub async fn new(broker: Broker, access: Access) -> Result<Self, BrokerError> {
        let (keys, anyone) = (Keys::default(), matches!(access, Access::Anyone));
        if let Access::Keys { bootstrap: Some(token) } = access {
            keys.note(bootstrap_key(&token), KEPT_NOWHERE);
        }
        let gate = Self(Arc::new(Shared {
            broker,
            keys,
            anyone: AtomicBool::new(anyone),
            audit: Audit::default(),
            places: Places::default(),
            counting: tokio::sync::Mutex::default(),
        }));
        gate.refresh().await?;
        tokio::spawn(gate.clone().keep_up());
        Ok(gate)
    }

    /// Who shows that. `authorization` is the value of the header, which must be there no more than once.
    pub fn caller(&self, authorization: Shown<'_>, from: Option<IpAddr>) -> Result<Caller, BrokerError> {
        if !self.needs_keys() {
            return Ok(Caller::new(self.clone(), None, from));
        }
        let shown = token(authorization);
        let session = shown.as_ref().map_err(|refused| *refused);
        match session.and_then(|token| self.0.keys.authenticate(token, self.now())) {
            Ok(session) => Ok(Caller::new(self.clone(), Some(session), from)),
            Err(refused) => {
                // Whose key has ended is known by its secret; anything else is only said.
                let known = matches!(refused, Unauthenticated::Expired | Unauthenticated::Revoked);
                let id = shown.ok().filter(|_| known).map(|token| token.id.to_string());
                self.note_refused(None, from, "authenticate", id.map(About::Key), refused.code());
                Err(refused.into())
            }
        }
    }

    /// Whether callers must show a key.
    pub fn needs_keys(&self) -> bool {
        !self.0.anyone.load(Ordering::Relaxed)
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.0.broker.now()
    }

    /// What was set.
    pub fn config(&self) -> &BrokerConfig {
        self.0.broker.config()
    }

    /// Returns when the broker ends.
    pub async fn stopped(&self) {
        self.0.broker.stopped().await;
    }

    /// Whether it can work: the store answers, and the broker does not end. Says what the store promises. Anyone may know.
    pub async fn ready(&self) -> Result<Capabilities, BrokerError> {
        if self.0.broker.is_stopping() {
            return Err(BrokerError::Stopping);
        }
        self.0.broker.list_queues(None, Limit::ONE).await?;
        Ok(self.0.broker.store.capabilities())
    }

    /// Writes down what was refused and is not written down yet.
    pub async fn flush_audit(&self) -> Result<(), BrokerError> {
        let Shared { broker, audit, .. } = &*self.0;
        Ok(audit.flush(&*broker.store, broker.at()).await?)
    }

    async fn trim_audit(&self) -> Result<(), BrokerError> {
        let Shared { broker, audit, .. } = &*self.0;
        let horizon = broker.now().minus(broker.config.audit_kept);
        Ok(audit.trim(&*broker.store, horizon).await.map(drop)?)
    }

    /// Takes over what the store keeps, in case that another instance changed it.
    async fn refresh(&self) -> Result<(), BrokerError> {
        let (Shared { broker, keys, anyone, .. }, shared) = (&*self.0, self.0.broker.peers.is_some());
        if !self.needs_keys() && !shared {
            return Ok(());
        }
        // Another instance may have made a key by a clock that is a little behind.
        let looked = if shared { self.now().minus(CLOCKS_DIFFER) } else { self.now() };
        let (mut after, mut kept, mut any) = (None, HashSet::new(), false);
        loop {
            let entries = broker.store.registry_list(EntryKind::ApiKey, after.as_ref(), Limit::MAX).await?;
            for entry in &entries {
                let name = entry.key.name.as_str();
                let Some(key) = ApiKey::decode(name, &entry.value) else {
                    tracing::error!(id = name, "an API key cannot be read, and lets nobody in");
                    continue;
                };
                kept.insert(key.id);
                keys.note(key, entry.version);
            }
            any |= !entries.is_empty();
            after = entries.into_iter().next_back().map(|entry| entry.key.name);
            if after.is_none() {
                keys.forget_others(&kept, looked);
                break;
            }
        }
        if any && anyone.swap(false, Ordering::Relaxed) {
            tracing::warn!("another instance has made an API key: from now on everybody needs one here, too");
        }
        Ok(())
    }

    /// Keeps keys and trail up to date while the broker runs.
    async fn keep_up(self) {
        let mut round = 0_u64;
        let mut next = Box::pin(pause(audit::COALESCE));
        loop {
            tokio::select! {
                () = &mut next => {}
                // Rounds go on in their time, however often others change keys.
                () = self.0.broker.keys_changed() => {
                    if let Err(error) = self.refresh().await {
                        tracing::error!(%error, "what others did to keys is known later");
                    }
                    continue;
                }
                () = self.stopped() => return,
            }
            next = Box::pin(pause(audit::COALESCE));
            round += 1;
            for done in [
                self.flush_audit().await,
                if round.is_multiple_of(REFRESH_ROUNDS) { self.refresh().await } else { Ok(()) },
                if round % TRIM_ROUNDS == 1 { self.trim_audit().await } else { Ok(()) },
            ] {
                if let Err(error) = done {
                    tracing::error!(%error, "keys or the audit trail are not up to date");
                }
            }
        }
    }
}

/// What a caller shows to be let in.
#[derive(Debug, Clone, Copy)]
pub enum Shown<'a> {
    /// Nothing.
    Nothing,
    /// This, as it was sent.
    Header(&'a [u8]),
    /// More than one thing, which may say different things.
    Several,
}

/// The token in a header: `Bearer`, whichever way it is written, one space, and the token.
fn token(shown: Shown<'_>) -> Result<Token, Unauthenticated> {
    let header = match shown {
        Shown::Nothing => return Err(Unauthenticated::Missing),
        Shown::Several => return Err(Unauthenticated::Invalid),
        Shown::Header(header) => header,
    };
    let text = std::str::from_utf8(header).map_err(|_| Unauthenticated::Invalid)?;
    let (scheme, token) = text.split_once(' ').ok_or(Unauthenticated::Invalid)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Unauthenticated::Invalid);
    }
    token.parse().map_err(|_| Unauthenticated::Invalid)
}

/// The key from the environment: it may do everything, and is kept nowhere.
fn bootstrap_key(token: &Token) -> ApiKey {
    ApiKey {
        id: token.id,
        name: KeyName::new("bootstrap").expect("a name"),
        grants: Grants::everything(),
        quotas: Quotas::default(),
        created_at: Timestamp::EPOCH,
        created_by: None,
        expires_at: None,
        revoked_at: None,
        secrets: vec![Kept { hash: token.secret.hash(), until: None }],
    }
}
