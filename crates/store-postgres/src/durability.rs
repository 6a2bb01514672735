//! What an answer of this database survives, by the settings that it has at the moment.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use redrive_store::{StoreError, Survives};
use tokio_postgres::GenericClient;

use crate::error::unreached;
use crate::options::Durability;

/// What a commit means on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting")]
pub(crate) struct Commit {
    fsync: bool,
    full_page_writes: bool,
    /// `synchronous_commit`.
    waits_for: String,
    /// Whether it waits for a standby, according to `synchronous_standby_names`.
    has_names: bool,
    /// Whether such a standby is connected, or nobody lets us see.
    has_standby: bool,
}

/// Why a server promises less than it must.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Short {
    wanted: Durability,
    setting: String,
}

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wanted, setting } = self;
        write!(f, "durability: `{wanted}` is not what this database promises: {setting}")
    }
}

impl std::error::Error for Short {}

impl Commit {
    pub(crate) async fn read(client: &impl GenericClient) -> Result<Self, tokio_postgres::Error> {
        let row = client.query_one(include_str!("../sql/durability.sql"), &[]).await?;
        Ok(Self {
            fsync: row.try_get(0)?,
            full_page_writes: row.try_get(1)?,
            waits_for: row.try_get(2)?,
            has_names: row.try_get(3)?,
            has_standby: row.try_get(4)?,
        })
    }

    pub(crate) fn survives(&self) -> Survives {
        let replicated = self.has_names && matches!(self.waits_for.as_str(), "on" | "remote_apply");
        match self.waits_for.as_str() {
            "off" => Survives::Nothing,
            _ if !(self.fsync && self.full_page_writes) => Survives::ProcessCrash,
            _ if replicated => Survives::DiskLoss,
            _ => Survives::PowerLoss,
        }
    }

    /// The first setting that is in the way.
    pub(crate) fn short(&self, wanted: Durability) -> Option<Short> {
        let waits = &self.waits_for;
        let setting = if wanted == Durability::Any {
            return None;
        } else if waits == "off" {
            "synchronous_commit is off, so that a crash of the database loses what it answered last"
                .to_owned()
        } else if !self.fsync {
            "fsync is off, so that a power cut may ruin it".to_owned()
        } else if !self.full_page_writes {
            "full_page_writes is off, so that a power cut may ruin it".to_owned()
        } else if wanted == Durability::Local {
            return None;
        } else if !self.has_names {
            "synchronous_standby_names is empty, so that no answer waits for a standby".to_owned()
        } else if self.survives() != Survives::DiskLoss {
            format!("synchronous_commit is {waits}, so that no answer waits for the disk of a standby")
        } else if !self.has_standby {
            "no synchronous standby is connected, so that no answer would ever come".to_owned()
        } else {
            return None;
        };
        Some(Short { wanted, setting })
    }
}

/// What an answer survives, by the connection that was made last.
#[derive(Debug, Clone)]
pub(crate) struct Promise {
    wanted: Durability,
    level: Arc<AtomicU8>,
}

const LEVELS: [Survives; 4] =
    [Survives::Nothing, Survives::ProcessCrash, Survives::PowerLoss, Survives::DiskLoss];

impl Promise {
    /// What the server promises, where that is enough.
    pub(crate) async fn wanted(client: &impl GenericClient, wanted: Durability) -> Result<Self, StoreError> {
        let commit = Commit::read(client).await.map_err(unreached)?;
        if let Some(short) = commit.short(wanted) {
            return Err(StoreError::Unavailable(short.into()));
        }
        let promise = Self { wanted, level: Arc::default() };
        promise.set(commit.survives());
        Ok(promise)
    }

    /// Looks again, over a connection that was just made: it may lead to another server, or to the same with other
    /// settings. Less than was wanted is said, and served on: what is there must be reachable.
    pub(crate) async fn renew(&self, client: &impl GenericClient) -> Result<(), tokio_postgres::Error> {
        let commit = Commit::read(client).await?;
        let before = self.set(commit.survives());
        if before != commit.survives() {
            match commit.short(self.wanted) {
                Some(short) => tracing::error!(survives = %commit.survives(), "{short}"),
                None => {
                    tracing::warn!(survives = %commit.survives(), "the database's durability has changed");
                }
            }
        }
        Ok(())
    }

    pub(crate) fn survives(&self) -> Survives {
        level(self.level.load(Ordering::Relaxed))
    }

    fn set(&self, survives: Survives) -> Survives {
        let at = LEVELS.iter().position(|level| *level == survives).unwrap_or_default();
        level(self.level.swap(u8::try_from(at).unwrap_or_default(), Ordering::Relaxed))
    }
}

fn level(at: u8) -> Survives {
    LEVELS.get(usize::from(at)).copied().unwrap_or(Survives::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(synchronous_commit: &str) -> Commit {
        Commit {
            fsync: true,
            full_page_writes: true,
            waits_for: synchronous_commit.to_owned(),
            has_names: false,
            has_standby: false,
        }
    }

    #[test]
    fn an_answer_survives_what_it_waited_for() {
        let names = |synchronous_commit| Commit { has_names: true, ..commit(synchronous_commit) };
        for (commit, survives) in [
            (commit("off"), Survives::Nothing),
            (commit("local"), Survives::PowerLoss),
            (commit("on"), Survives::PowerLoss),
            (Commit { fsync: false, ..commit("on") }, Survives::ProcessCrash),
            (Commit { full_page_writes: false, ..names("on") }, Survives::ProcessCrash),
            (names("off"), Survives::Nothing),
            (names("local"), Survives::PowerLoss),
            (names("remote_write"), Survives::PowerLoss),
            (names("on"), Survives::DiskLoss),
            (names("remote_apply"), Survives::DiskLoss),
        ] {
            assert_eq!(commit.survives(), survives, "{commit:?}");
        }
    }

    #[test]
    fn the_setting_that_is_in_the_way_is_named() {
        let says = |commit: &Commit, wanted| commit.short(wanted).map(|short| short.setting);
        let local = |commit: Commit| says(&commit, Durability::Local).unwrap_or_default();
        assert!(local(commit("off")).starts_with("synchronous_commit is off"));
        assert!(local(Commit { fsync: false, ..commit("on") }).starts_with("fsync is off"));
        assert!(
            local(Commit { full_page_writes: false, ..commit("on") }).starts_with("full_page_writes is off")
        );
        assert_eq!(local(commit("local")), "");
        assert_eq!(says(&commit("off"), Durability::Any), None);
        let replicated = |commit: Commit| says(&commit, Durability::Replicated).unwrap_or_default();
        assert!(replicated(commit("on")).starts_with("synchronous_standby_names is empty"));
        let named = Commit { has_names: true, ..commit("on") };
        assert!(replicated(named.clone()).starts_with("no synchronous standby is connected"));
        let connected = Commit { has_standby: true, ..named };
        assert!(
            replicated(Commit { waits_for: "local".to_owned(), ..connected.clone() })
                .starts_with("synchronous_commit is local")
        );
        assert_eq!(replicated(connected), "");
    }
}
