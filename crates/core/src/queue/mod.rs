//! The queue: its name, its settings, its pauses and what it has counted.

mod pause;
mod settings;
mod totals;

pub use pause::{Pause, Pauses};
pub use settings::{QueueConfig, QueueSettings, Retention};
pub use totals::Totals;

use std::collections::BTreeMap;

use crate::invalid::Invalid;
use crate::limits::{KEY_SETTINGS_MAX, QUEUE_NAME_BYTES_MAX};
use crate::message::FairnessKey;
use crate::policy::Weight;
use crate::text::text_type;
use crate::time::Timestamp;

text_type! {
    /// The name of a queue.
    QueueName, field = "queue", max = QUEUE_NAME_BYTES_MAX, empty = false,
    allowed = "A-Z a-z 0-9 . _ -", |c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// How many messages each fairness key is served in its turn; a key that is not named has weight 1.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Weights(BTreeMap<FairnessKey, Weight>);

impl Weights {
    /// The weights of at most [`KEY_SETTINGS_MAX`] keys.
    pub fn new(weights: impl IntoIterator<Item = (FairnessKey, Weight)>) -> Result<Self, Invalid> {
        let weights: BTreeMap<_, _> = weights.into_iter().collect();
        Invalid::check_length("weights", weights.len(), KEY_SETTINGS_MAX, "keys")?;
        Ok(Self(weights))
    }

    /// The weight of a key.
    pub fn of(&self, key: &FairnessKey) -> Weight {
        self.0.get(key).copied().unwrap_or_default()
    }

    /// Every key that has a weight of its own.
    pub fn iter(&self) -> impl Iterator<Item = (&FairnessKey, Weight)> {
        self.0.iter().map(|(key, weight)| (key, *weight))
    }
}

/// A queue as a store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Its name.
    pub name: QueueName,
    /// When it was created.
    pub created_at: Timestamp,
    /// Raised by every change of configuration; an update names the version it saw.
    pub version: u64,
    /// What somebody set; what nobody set comes from the store's defaults.
    pub config: QueueConfig,
    /// What is paused.
    pub pauses: Pauses,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invalid::Problem;

    #[test]
    fn hostile_names_are_refused_where_they_go_wrong() {
        for (name, at) in
            [("a b", 1), ("a/b", 1), ("a;--", 1), ("q{1}", 1), ("é", 0), ("a\0", 1), ("a\r\n", 1)]
        {
            let error = QueueName::new(name).unwrap_err();
            assert!(
                matches!(error.problem, Problem::BadCharacter { at: where_, .. } if where_ == at),
                "{name:?}"
            );
        }
        assert_eq!(QueueName::new("").unwrap_err().problem, Problem::Empty);
        assert!(QueueName::new("q".repeat(QUEUE_NAME_BYTES_MAX)).is_ok());
        assert!(QueueName::new("q".repeat(QUEUE_NAME_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn a_key_without_a_weight_has_weight_one() {
        let key = FairnessKey::new("tenant").unwrap();
        assert_eq!(Weights::default().of(&key), Weight::ONE);
        let weights = Weights::new([(key.clone(), Weight::new(3).unwrap())]).unwrap();
        assert_eq!(weights.of(&key).get(), 3);
    }
}
