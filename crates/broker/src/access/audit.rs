//! The audit trail: what operators did, and what was refused to whom.
//!
//! A deed is written down when it is done, before its answer leaves. Refusals may come as fast as somebody can send
//! them, so those that are alike are counted together and written down a few times a minute.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use redrive_core::access::{KeyId, On};
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{Append, Limit, LogName, LogRange, LogRecord, Now, Store, StoreError};
use serde::{Deserialize, Serialize};

/// How long refusals are counted together.
pub(crate) const COALESCE: Millis = Millis::from_secs(5);
/// Most refusals of different kinds that are counted at a time; the rest is counted as one.
const KINDS_MAX: usize = 256;

/// Who did something.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Who {
    /// The id of the key that was shown; `None` where none was, or none is needed.
    pub key: Option<String>,
    /// What people call it.
    pub name: Option<String>,
}

/// What something was done to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// A queue; `*` is all of them.
    Queue(String),
    /// An API key, by its id.
    Key(String),
    /// A topic, or a pattern of topics.
    Topic(String),
    /// A subscription.
    Subscription(String),
}

impl About {
    /// What something is about that asks for a right on that. The queue of a subscription stands for it.
    pub(super) fn of(on: On<'_>) -> Option<Self> {
        match on {
            On::Queue(queue) => Some(match SubscriptionId::of_queue(queue) {
                Some(id) => Self::Subscription(id.to_owned()),
                None => Self::Queue(queue.as_str().to_owned()),
            }),
            On::Topic(topic) => Some(Self::Topic(topic.as_str().to_owned())),
            On::Topics(pattern) => Some(Self::Topic(pattern.as_str().to_owned())),
            On::Every | On::Some => None,
        }
    }

    /// The name or the id.
    pub fn name(&self) -> &str {
        match self {
            Self::Queue(name) | Self::Key(name) | Self::Topic(name) | Self::Subscription(name) => name,
        }
    }
}

/// Something that was done, or refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Act {
    /// Who.
    #[serde(flatten)]
    pub who: Who,
    /// From where.
    pub from: Option<IpAddr>,
    /// What.
    pub what: String,
    /// To which queue, or to which key.
    pub on: Option<About>,
    /// `ok`, or the code of the error.
    pub result: String,
}

/// An entry of the trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its number.
    pub sequence: u64,
    /// When it was written down.
    pub at: Timestamp,
    /// What was done.
    pub act: Act,
    /// How often, where several were alike.
    pub count: u64,
}

#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(flatten)]
    act: Act,
    count: u64,
}

impl AuditEntry {
    fn read(record: &LogRecord) -> Option<Self> {
        let written: Written = serde_json::from_slice(&record.value).ok()?;
        Some(Self { sequence: record.sequence, at: record.at, act: written.act, count: written.count })
    }
}

/// The trail of a store.
#[derive(Debug)]
pub(crate) struct Audit {
    log: LogName,
    refused: Mutex<HashMap<Act, u64>>,
}

impl Default for Audit {
    fn default() -> Self {
        let log = LogName::new("audit").expect("a name");
        Self { log, refused: Mutex::default() }
    }
}

impl Audit {
    /// Notes a refusal, to be written down soon.
    pub(crate) fn refused(&self, act: Act) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let full = refused.len() >= KINDS_MAX && !refused.contains_key(&act);
        let act = if full { other(act) } else { act };
        *refused.entry(act).or_default() += 1;
    }

    /// Writes down something that was done.
    pub(crate) async fn done(&self, store: &dyn Store, now: Now, act: Act) -> Result<(), StoreError> {
        self.append(store, now, vec![(act, 1)]).await
    }

    /// Writes down what was refused.
    pub(crate) async fn flush(&self, store: &dyn Store, now: Now) -> Result<(), StoreError> {
        let refused = std::mem::take(&mut *self.refused.lock().unwrap_or_else(PoisonError::into_inner));
        if refused.is_empty() {
            return Ok(());
        }
        for (act, count) in &refused {
            let from = act.from.map(tracing::field::display);
            tracing::warn!(
                key = act.who.key,
                what = act.what,
                on = act.on.as_ref().map(About::name),
                from,
                result = act.result,
                count,
                "refused"
            );
        }
        let written =
            self.append(store, now, refused.iter().map(|(act, count)| (act.clone(), *count)).collect()).await;
        if written.is_err() {
            // For the next time, together with what is refused until then.
            let mut waiting = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            for (act, count) in refused {
                *waiting.entry(act).or_default() += count;
            }
        }
        written
    }

    async fn append(&self, store: &dyn Store, now: Now, acts: Vec<(Act, u64)>) -> Result<(), StoreError> {
        let written = acts.into_iter().map(|(act, count)| {
            let bytes = serde_json::to_vec(&Written { act, count }).expect("plain fields are JSON");
            bytes.into()
        });
        let Ok(records) = Append::new(written.collect()) else { return Ok(()) };
        store.log_append(now, &self.log, records).await.map(drop)
    }

    /// Entries, from either end.
    pub(crate) async fn read(
        &self,
        store: &dyn Store,
        range: LogRange,
        limit: Limit,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let records = store.log_read(&self.log, range, limit).await?;
        Ok(records.iter().filter_map(AuditEntry::read).collect())
    }

    /// Forgets what is older.
    pub(crate) async fn trim(&self, store: &dyn Store, horizon: Timestamp) -> Result<u64, StoreError> {
        store.log_trim(&self.log, horizon).await
    }
}

/// A refusal of which only the result is kept.
fn other(act: Act) -> Act {
    let who = Who { key: None, name: None };
    Act { who, from: None, what: "other".to_owned(), on: None, result: act.result }
}

/// Who that is: a key, by its id and its name.
pub(crate) fn who(key: Option<(KeyId, &str)>) -> Who {
    Who { key: key.map(|(id, _)| id.to_string()), name: key.map(|(_, name)| name.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_are_refused_only_so_many_kinds_are_kept_and_all_are_counted() {
        let audit = Audit::default();
        for round in 0..2_000_u32 {
            audit.refused(Act {
                who: who(None),
                from: Some(std::net::Ipv4Addr::from(round).into()),
                what: "enqueue".to_owned(),
                on: None,
                result: "KEY_INVALID".to_owned(),
            });
        }
        let refused = audit.refused.lock().unwrap();
        assert_eq!(refused.len(), KINDS_MAX + 1);
        assert_eq!(refused.values().sum::<u64>(), 2_000);
    }
}
