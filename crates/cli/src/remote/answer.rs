//! What a server answered: as it was written, and as we understand it.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// An answer. Programs get the server's own JSON, with fields that this client does not know yet and in the server's order;
/// people get what is understood of it.
#[derive(Debug, Clone)]
pub(crate) struct Answer<T> {
    pub(crate) value: T,
    pub(crate) json: Box<RawValue>,
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Answer<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let value = serde_json::from_str(json.get()).map_err(D::Error::custom)?;
        Ok(Self { value, json })
    }
}
