//! An operation, and how it is written down.

use std::fmt;
use std::str::FromStr;

use redrive_core::invalid::Invalid;
use redrive_core::lease::ConsumerName;
use redrive_core::message::{DeadReason, FairnessKey, MessageId, MessageType, Note, Source, State};
use redrive_core::policy::Fingerprint;
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::Filter;
use serde::{Deserialize, Serialize};

/// The name of an operation: sortable by the time at which it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub(crate) MessageId);

impl OperationId {
    /// Before every operation that was started at that time or later.
    pub(crate) fn first_of(at: Timestamp) -> Self {
        Self(MessageId::new(at, 0))
    }
}

impl Default for OperationId {
    fn default() -> Self {
        Self(MessageId::MIN)
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for OperationId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        text.parse().map(Self)
    }
}

/// What an operation does to each message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// dead → ready.
    Redrive {
        /// Who asked.
        by: Note,
        /// Why.
        reason: Note,
    },
    /// any but leased → gone; leased ones too, by force.
    Discard {
        /// Whether leased ones go, too.
        force: bool,
    },
    /// any but leased → another queue.
    Move {
        /// Where to.
        target: QueueName,
    },
}

impl Work {
    /// The word in APIs and logs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Redrive { .. } => "redrive",
            Self::Discard { .. } => "discard",
            Self::Move { .. } => "move",
        }
    }
}

/// Where an operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationState {
    /// Under way.
    Running,
    /// Waiting to be resumed.
    Paused,
    /// Everything that matched was touched.
    Done,
    /// Somebody ended it.
    Cancelled,
    /// It cannot go on.
    Failed,
}

impl OperationState {
    /// The word in APIs and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }

    /// Whether it will never go on.
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Done | Self::Cancelled | Self::Failed)
    }
}

/// How far an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// How many messages matched when it was started.
    pub total: u64,
    /// How many were looked at.
    pub matched: u64,
    /// How many were changed.
    pub applied: u64,
    /// How many were left as they were.
    pub refused: u64,
}

/// Work on many messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Its name.
    pub id: OperationId,
    /// In which queue.
    pub queue: QueueName,
    /// On which messages.
    pub filter: Filter,
    /// What is done to each.
    pub work: Work,
    /// How many messages a second at most.
    pub rate: Option<u32>,
    /// Where it stands.
    pub state: OperationState,
    /// How far it is.
    pub progress: Progress,
    /// The last message that was looked at.
    pub cursor: Option<MessageId>,
    /// The last message that it is about: what was there when it was started. Operations of older versions have none, and go on
    /// to the end of the queue.
    pub until: Option<MessageId>,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it last came further.
    pub updated_at: Timestamp,
    /// Why it cannot go on.
    pub problem: Option<String>,
    /// Which instance carries it out, where there are several.
    pub(crate) owner: Option<Owner>,
}

/// Which instance carries an operation out, and until when the others take its word for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    pub(crate) token: String,
    until: u64,
}

impl Owner {
    pub(crate) fn new(token: String, until: Timestamp) -> Self {
        Self { token, until: until.as_millis() }
    }

    pub(crate) fn until(&self) -> Timestamp {
        Timestamp::from_millis(self.until)
    }
}

/// The form in the store. A field that is added later must have a default: old records are read for ever.
#[derive(Serialize, Deserialize)]
struct Written {
    id: String,
    queue: String,
    filter: WrittenFilter,
    work: WrittenWork,
    rate: Option<u32>,
    state: OperationState,
    progress: Progress,
    cursor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    started_at: u64,
    updated_at: u64,
    problem: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<Owner>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum WrittenWork {
    Redrive { by: String, reason: String },
    Discard { force: bool },
    Move { target: String },
}

#[derive(Serialize, Deserialize)]
struct WrittenFilter {
    states: Vec<String>,
    ids: Vec<String>,
    kinds: Vec<String>,
    sources: Vec<String>,
    keys: Vec<String>,
    consumers: Vec<String>,
    reasons: Vec<String>,
    fingerprint: Option<u64>,
    attempts: Option<(u32, u32)>,
    created: Option<(u64, u64)>,
    error: Option<String>,
}

/// An id that may be left out.
fn read_id(written: Option<String>) -> Result<Option<MessageId>, Invalid> {
    written.map(|id| id.parse()).transpose()
}

fn texts<T>(values: &[T], text: impl Fn(&T) -> String) -> Vec<String> {
    values.iter().map(text).collect()
}

fn parsed<T: FromStr>(values: &[String]) -> Option<Vec<T>> {
    values.iter().map(|value| value.parse().ok()).collect()
}

impl WrittenFilter {
    fn of(filter: &Filter) -> Self {
        Self {
            states: texts(&filter.states, |state| state.name().to_owned()),
            ids: texts(&filter.ids, MessageId::to_string),
            kinds: texts(&filter.kinds, |kind| kind.as_str().to_owned()),
            sources: texts(&filter.sources, |source| source.as_str().to_owned()),
            keys: texts(&filter.keys, |key| key.as_str().to_owned()),
            consumers: texts(&filter.consumers, |consumer| consumer.as_str().to_owned()),
            reasons: texts(&filter.reasons, |reason| reason.name().to_owned()),
            fingerprint: filter.fingerprint.map(Fingerprint::to_bits),
            attempts: filter.attempts.as_ref().map(|range| (*range.start(), *range.end())),
            created: filter
                .created
                .as_ref()
                .map(|range| (range.start().as_millis(), range.end().as_millis())),
            error: filter.error.clone(),
        }
    }

    fn read(self) -> Option<Filter> {
        let state = |name: &String| State::ALL.into_iter().find(|state| state.name() == name);
        let reason = |name: &String| DeadReason::ALL.into_iter().find(|reason| reason.name() == name);
        Some(Filter {
            states: self.states.iter().map(state).collect::<Option<_>>()?,
            ids: parsed(&self.ids)?,
            kinds: parsed::<MessageType>(&self.kinds)?,
            sources: parsed::<Source>(&self.sources)?,
            keys: parsed::<FairnessKey>(&self.keys)?,
            consumers: parsed::<ConsumerName>(&self.consumers)?,
            reasons: self.reasons.iter().map(reason).collect::<Option<_>>()?,
            fingerprint: self.fingerprint.map(Fingerprint::from_bits),
            attempts: self.attempts.map(|(low, high)| low..=high),
            created: self.created.map(|(from, to)| Timestamp::from_millis(from)..=Timestamp::from_millis(to)),
            error: self.error,
        })
    }
}

impl Operation {
    pub(crate) fn encode(&self) -> Result<Vec<u8>, Invalid> {
        let written = Written {
            id: self.id.to_string(),
            queue: self.queue.as_str().to_owned(),
            filter: WrittenFilter::of(&self.filter),
            work: match &self.work {
                Work::Redrive { by, reason } => {
                    WrittenWork::Redrive { by: by.as_str().to_owned(), reason: reason.as_str().to_owned() }
                }
                Work::Discard { force } => WrittenWork::Discard { force: *force },
                Work::Move { target } => WrittenWork::Move { target: target.as_str().to_owned() },
            },
            rate: self.rate,
            state: self.state,
            progress: self.progress,
            cursor: self.cursor.map(|cursor| cursor.to_string()),
            until: self.until.map(|until| until.to_string()),
            started_at: self.started_at.as_millis(),
            updated_at: self.updated_at.as_millis(),
            problem: self.problem.clone(),
            owner: self.owner.clone(),
        };
        serde_json::to_vec(&written).map_err(|_| Invalid::unusable("operation", "it cannot be written down"))
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let written: Written = serde_json::from_slice(bytes).ok()?;
        Some(Self {
            id: written.id.parse().ok()?,
            queue: written.queue.parse().ok()?,
            filter: written.filter.read()?,
            work: match written.work {
                WrittenWork::Redrive { by, reason } => {
                    Work::Redrive { by: by.parse().ok()?, reason: reason.parse().ok()? }
                }
                WrittenWork::Discard { force } => Work::Discard { force },
                WrittenWork::Move { target } => Work::Move { target: target.parse().ok()? },
            },
            rate: written.rate,
            state: written.state,
            progress: written.progress,
            cursor: read_id(written.cursor).ok()?,
            until: read_id(written.until).ok()?,
            started_at: Timestamp::from_millis(written.started_at),
            updated_at: Timestamp::from_millis(written.updated_at),
            problem: written.problem,
            owner: written.owner,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_read_as_it_was_written() {
        let operation = Operation {
            id: OperationId(MessageId::new(Timestamp::from_millis(7), 9)),
            queue: "orders".parse().unwrap(),
            filter: Filter {
                states: vec![State::Dead],
                ids: vec![MessageId::MIN],
                kinds: vec!["paid".parse().unwrap()],
                sources: vec!["shop".parse().unwrap()],
                keys: vec!["tenant".parse().unwrap()],
                consumers: vec!["worker-1".parse().unwrap()],
                reasons: vec![DeadReason::Buried],
                fingerprint: Some(Fingerprint::from_bits(u64::MAX)),
                attempts: Some(1..=3),
                created: Some(Timestamp::EPOCH..=Timestamp::MAX),
                error: Some("timeout".to_owned()),
            },
            work: Work::Redrive { by: "ann".parse().unwrap(), reason: "fixed".parse().unwrap() },
            rate: Some(10),
            state: OperationState::Paused,
            progress: Progress { total: 4, matched: 3, applied: 2, refused: 1 },
            cursor: Some(MessageId::MIN),
            until: Some(MessageId::new(Timestamp::from_millis(3), 1)),
            started_at: Timestamp::from_millis(1),
            updated_at: Timestamp::from_millis(2),
            problem: Some("no room".to_owned()),
            owner: Some(Owner::new("me".to_owned(), Timestamp::from_millis(3))),
        };
        assert_eq!(Operation::decode(&operation.encode().unwrap()), Some(operation.clone()));
        let old = Operation { owner: None, until: None, ..operation };
        let bytes = old.encode().unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(!text.contains("owner") && !text.contains("until"), "as it always was");
        assert_eq!(Operation::decode(&bytes), Some(old));
        assert_eq!(Operation::decode(b"{}"), None);
    }
}
