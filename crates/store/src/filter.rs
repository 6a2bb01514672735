//! Which messages are meant.

use std::ops::RangeInclusive;

use redrive_core::invalid::Invalid;
use redrive_core::lease::ConsumerName;
use redrive_core::limits::{ERROR_BYTES_MAX, FILTER_VALUES_MAX};
use redrive_core::message::{DeadReason, FairnessKey, Message, MessageId, MessageType, Source, State};
use redrive_core::policy::Fingerprint;
use redrive_core::time::Timestamp;

/// A message matches when it matches every part; an empty list and `None` match all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// In one of these states.
    pub states: Vec<State>,
    /// One of these.
    pub ids: Vec<MessageId>,
    /// Of one of these types.
    pub kinds: Vec<MessageType>,
    /// From one of these sources.
    pub sources: Vec<Source>,
    /// Of one of these fairness keys.
    pub keys: Vec<FairnessKey>,
    /// Leased by one of these.
    pub consumers: Vec<ConsumerName>,
    /// Dead for one of these reasons.
    pub reasons: Vec<DeadReason>,
    /// Dead with this fingerprint.
    pub fingerprint: Option<Fingerprint>,
    /// With so many attempts.
    pub attempts: Option<RangeInclusive<u32>>,
    /// Enqueued in this time.
    pub created: Option<RangeInclusive<Timestamp>>,
    /// With this text somewhere in its last error.
    pub error: Option<String>,
}

impl Filter {
    /// Messages in that state.
    pub fn state(state: State) -> Self {
        Self { states: vec![state], ..Self::default() }
    }

    /// These messages.
    pub fn ids(ids: impl IntoIterator<Item = MessageId>) -> Self {
        Self { ids: ids.into_iter().collect(), ..Self::default() }
    }

    /// Refuses what is over a limit, naming the field.
    pub fn check(&self) -> Result<(), Invalid> {
        let lists = [
            ("ids", self.ids.len()),
            ("types", self.kinds.len()),
            ("sources", self.sources.len()),
            ("keys", self.keys.len()),
            ("consumers", self.consumers.len()),
            ("states", self.states.len()),
            ("reasons", self.reasons.len()),
        ];
        for (field, values) in lists {
            Invalid::check_length(field, values, FILTER_VALUES_MAX, "items")?;
        }
        Invalid::check_length("error", self.error.as_ref().map_or(0, String::len), ERROR_BYTES_MAX, "bytes")
    }

    /// Whether a message matches at `now`.
    pub fn matches(&self, message: &Message, now: Timestamp) -> bool {
        let progress = &message.progress;
        let death = progress.death();
        any_of(&self.states, Some(&progress.state(now)))
            && any_of(&self.ids, Some(&message.id()))
            && any_of(&self.kinds, Some(&message.spec.kind))
            && any_of(&self.sources, Some(&message.spec.source))
            && any_of(&self.keys, Some(&message.spec.fairness_key))
            && any_of(&self.consumers, progress.lease().map(|lease| &lease.consumer))
            && any_of(&self.reasons, death.map(|death| &death.reason))
            && self.fingerprint.is_none_or(|print| death.is_some_and(|death| death.fingerprint == print))
            && self.attempts.as_ref().is_none_or(|range| range.contains(&progress.attempts))
            && self.created.as_ref().is_none_or(|range| range.contains(&message.created_at))
            && self.error.as_ref().is_none_or(|text| {
                message.history.last_error.as_ref().is_some_and(|error| error.as_str().contains(text))
            })
    }
}

fn any_of<T: PartialEq>(wanted: &[T], actual: Option<&T>) -> bool {
    wanted.is_empty() || actual.is_some_and(|actual| wanted.contains(actual))
}
