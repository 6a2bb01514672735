//! What the servers promise, by their own settings, read from where they are in force.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, Value};
use redrive_store::{StoreError, Survives};

use crate::error::{Fault, is_of_the_network, unreached};
use crate::greet::info;
use crate::link::Link;
use crate::options::Durability;
use crate::queue::fields;
use crate::reply;

/// The settings of a server that decide what becomes of what it has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keeping {
    /// Whether it writes an append-only file.
    appendonly: bool,
    /// When it syncs that; unknown where it does not tell.
    appendfsync: Option<String>,
    /// Whether it syncs nothing while its file is written anew.
    rests: bool,
    /// What it throws away when it has no room left, where it has a limit and does so.
    evicts: Option<String>,
}

/// Why a server promises less than it must.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Short {
    wanted: Durability,
    place: String,
    setting: String,
}

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wanted, place, setting } = self;
        write!(f, "durability: `{wanted}` is not what {place} promises: {setting}")
    }
}

impl std::error::Error for Short {}

impl Keeping {
    /// What the settings of a server come to. One that does not tell them promises the least.
    fn of(settings: &HashMap<String, String>) -> Self {
        let is = |name: &str, value: &str| settings.get(name).is_some_and(|is| is == value);
        let bounded = settings.get("maxmemory").is_some_and(|max| max != "0");
        let policy = settings.get("maxmemory-policy").filter(|policy| *policy != "noeviction");
        Self {
            appendonly: is("appendonly", "yes"),
            appendfsync: settings.get("appendfsync").cloned(),
            rests: is("no-appendfsync-on-rewrite", "yes"),
            evicts: policy.filter(|_| bounded).cloned(),
        }
    }

    /// Asks a server for them.
    pub(crate) async fn read(connection: &mut MultiplexedConnection) -> Result<Self, Fault> {
        let mut get = redis::cmd("CONFIG");
        get.arg("GET").arg("appendonly").arg("appendfsync").arg("maxmemory").arg("maxmemory-policy");
        get.arg("no-appendfsync-on-rewrite");
        match ask(connection, &get).await {
            Ok(answer) => Ok(Self::of(&fields(answer)?)),
            // A server that others look after does not tell its settings; some of them are among what it tells of itself.
            Err(error) if !is_of_the_network(&error) => Self::told(connection).await,
            Err(error) => Err(Fault::Again(unreached(error))),
        }
    }

    async fn told(connection: &mut MultiplexedConnection) -> Result<Self, Fault> {
        let said = ask(connection, &redis::cmd("INFO")).await;
        let said = reply::text(said.map_err(|error| Fault::Again(unreached(error)))?)?;
        let appendonly = if info(&said, "aof_enabled") == Some("1") { "yes" } else { "no" };
        let told = [
            ("appendonly", appendonly),
            ("maxmemory", info(&said, "maxmemory").unwrap_or("0")),
            ("maxmemory-policy", info(&said, "maxmemory_policy").unwrap_or("noeviction")),
        ];
        Ok(Self::of(&told.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
    }

    pub(crate) fn survives(&self) -> Survives {
        match (self.appendonly && self.evicts.is_none(), self.appendfsync.as_deref()) {
            (true, Some("always")) if !self.rests => Survives::PowerLoss,
            (true, _) => Survives::ProcessCrash,
            (false, _) => Survives::Nothing,
        }
    }

    /// The first setting of the server at that place that is in the way.
    pub(crate) fn short(&self, wanted: Durability, place: &str) -> Option<Short> {
        let setting = if wanted == Durability::Any {
            return None;
        } else if let Some(policy) = &self.evicts {
            format!("maxmemory-policy is {policy}, so that it throws messages away when it has no room left")
        } else if !self.appendonly {
            "appendonly is no, so that the end of its process loses everything since its last snapshot"
                .to_owned()
        } else if wanted == Durability::Process || self.survives() >= Survives::PowerLoss {
            return None;
        } else if self.appendfsync.as_deref() == Some("always") {
            "no-appendfsync-on-rewrite is yes, so that a power cut while its file is written anew loses what it answered last"
                .to_owned()
        } else {
            let when = self.appendfsync.as_deref().unwrap_or("not told");
            format!("appendfsync is {when} and not always, so that a power cut loses what it answered last")
        };
        Some(Short { wanted, place: place.to_owned(), setting })
    }
}

async fn ask(connection: &mut MultiplexedConnection, command: &Cmd) -> Result<Value, RedisError> {
    connection.send_packed_command(command).await.and_then(Value::extract_error)
}

/// What an answer survives, by the connection to each master that was made last.
#[derive(Debug)]
pub(crate) struct Promise {
    wanted: Durability,
    levels: Mutex<HashMap<String, Survives>>,
    /// Whether the store is open. Until then, less than was wanted is refused.
    open: AtomicBool,
}

impl Promise {
    pub(crate) fn new(wanted: Durability) -> Self {
        Self { wanted, levels: Mutex::default(), open: AtomicBool::new(false) }
    }

    fn levels(&self) -> MutexGuard<'_, HashMap<String, Survives>> {
        self.levels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection was made to a master with these settings: it may be another one than before, or the same with others. Less
    /// than was wanted is said, and served on once the store is open: what is there must be reachable.
    pub(crate) fn renew(&self, address: &str, keeping: &Keeping) -> Result<(), StoreError> {
        let (survives, short) = (keeping.survives(), keeping.short(self.wanted, address));
        if let Some(short) = &short
            && !self.open.load(Ordering::Acquire)
        {
            return Err(StoreError::Unavailable(short.clone().into()));
        }
        let before = self.levels().insert(address.to_owned(), survives);
        match (before, short) {
            (Some(before), _) if before == survives => {}
            (_, Some(short)) => tracing::error!(%survives, "{short}"),
            (Some(_), None) => {
                tracing::warn!(%survives, server = address, "the durability of a server has changed");
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// It is no master any more: what it would promise is nobody's concern.
    pub(crate) fn forget(&self, address: &str) {
        self.levels().remove(address);
    }

    /// What all servers promise, which is what the least of them does.
    fn survives(&self) -> Survives {
        self.levels().values().copied().min().unwrap_or(Survives::Nothing)
    }
}

impl Link {
    /// Meets all masters, and refuses those that promise less than is wanted.
    pub(crate) async fn promised(&self) -> Result<(), Fault> {
        for node in self.master_addresses().await? {
            self.ask(&node, &redis::cmd("PING")).await?;
        }
        self.promise.open.store(true, Ordering::Release);
        Ok(())
    }

    pub(crate) fn survives(&self) -> Survives {
        self.promise.survives()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeping(settings: &[(&str, &str)]) -> Keeping {
        Keeping::of(&settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    const EVERYSEC: [(&str, &str); 2] = [("appendonly", "yes"), ("appendfsync", "everysec")];

    #[test]
    fn an_answer_survives_what_the_settings_say() {
        for (settings, survives) in [
            (
                &[("appendonly", "yes"), ("appendfsync", "always"), ("maxmemory", "0")][..],
                Survives::PowerLoss,
            ),
            (
                &[("appendonly", "yes"), ("appendfsync", "always"), ("no-appendfsync-on-rewrite", "yes")],
                Survives::ProcessCrash,
            ),
            (&EVERYSEC, Survives::ProcessCrash),
            (&[("appendonly", "yes")], Survives::ProcessCrash),
            (&[("appendonly", "no"), ("appendfsync", "always")], Survives::Nothing),
            (&[], Survives::Nothing),
            (
                &[("appendonly", "yes"), ("maxmemory", "100"), ("maxmemory-policy", "allkeys-lru")],
                Survives::Nothing,
            ),
            (
                &[("appendonly", "yes"), ("maxmemory", "0"), ("maxmemory-policy", "allkeys-lru")],
                Survives::ProcessCrash,
            ),
        ] {
            assert_eq!(keeping(settings).survives(), survives, "{settings:?}");
        }
    }

    #[test]
    fn the_setting_that_is_in_the_way_is_named() {
        let says = |settings: &[(&str, &str)], wanted| {
            keeping(settings).short(wanted, "here:1").map(|short| short.to_string()).unwrap_or_default()
        };
        assert_eq!(says(&EVERYSEC, Durability::Process), "");
        let short = says(&EVERYSEC, Durability::Power);
        assert!(
            short.starts_with("durability: `power` is not what here:1 promises: appendfsync is everysec")
        );
        assert_eq!(says(&[], Durability::Any), "");
        assert!(says(&[], Durability::Process).contains("appendonly is no"));
        let evicts = [("appendonly", "yes"), ("maxmemory", "100"), ("maxmemory-policy", "allkeys-lru")];
        assert!(says(&evicts, Durability::Process).contains("maxmemory-policy is allkeys-lru"));
        assert!(says(&[("appendonly", "yes")], Durability::Power).contains("appendfsync is not told"));
        let rests = [("appendonly", "yes"), ("appendfsync", "always"), ("no-appendfsync-on-rewrite", "yes")];
        assert!(says(&rests, Durability::Power).contains("no-appendfsync-on-rewrite is yes"));
        assert_eq!(says(&rests, Durability::Process), "");
    }

    #[test]
    fn less_than_was_wanted_is_refused_before_the_start_and_shown_after_it() {
        let promise = Promise::new(Durability::Process);
        let (good, bad) = (keeping(&EVERYSEC), keeping(&[]));
        assert!(promise.renew("a", &bad).is_err());
        promise.renew("a", &good).unwrap();
        promise.renew("b", &good).unwrap();
        promise.open.store(true, Ordering::Release);
        promise.renew("b", &bad).unwrap();
        assert_eq!(promise.survives(), Survives::Nothing, "the least of them counts");
        promise.forget("b");
        assert_eq!(promise.survives(), Survives::ProcessCrash);
    }
}
