//! A setting that may be left out, or be set to nothing.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A setting that may be left out, which follows the defaults; `null`, which is no limit; or a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Maybe<T> {
    /// Not set.
    #[default]
    Unset,
    /// Set to nothing.
    Nothing,
    /// Set to this.
    Some(T),
}

impl<T> Maybe<T> {
    /// Whether it was left out.
    pub const fn is_unset(&self) -> bool {
        matches!(self, Self::Unset)
    }

    /// `None` where it was left out.
    pub fn set(self) -> Option<Option<T>> {
        match self {
            Self::Unset => None,
            Self::Nothing => Some(None),
            Self::Some(value) => Some(Some(value)),
        }
    }

    /// The other way round.
    pub fn from_set(value: Option<Option<T>>) -> Self {
        match value {
            None => Self::Unset,
            Some(None) => Self::Nothing,
            Some(Some(value)) => Self::Some(value),
        }
    }
}

impl<T: Serialize> Serialize for Maybe<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unset | Self::Nothing => serializer.serialize_none(),
            Self::Some(value) => value.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(|value| value.map_or(Self::Nothing, Self::Some))
    }
}
