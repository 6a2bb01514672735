//! What a handler gets of a message: a type, where its body can be read as one.

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::outcome::Failure;
use crate::message::Message;

/// Something that a message can be read as.
pub trait FromMessage: Sized {
    /// Reads it; what cannot be read is told for a person.
    fn from_message(message: &Message) -> Result<Self, String>;
}

/// A body of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: DeserializeOwned> FromMessage for Json<T> {
    fn from_message(message: &Message) -> Result<Self, String> {
        serde_json::from_slice(&message.body).map(Self).map_err(|error| error.to_string())
    }
}

impl FromMessage for Bytes {
    fn from_message(message: &Message) -> Result<Self, String> {
        Ok(message.body.clone())
    }
}

impl FromMessage for String {
    fn from_message(message: &Message) -> Result<Self, String> {
        Self::from_utf8(message.body.to_vec()).map_err(|error| error.to_string())
    }
}

/// What becomes of a message whose body cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BadBody {
    /// It is dead: it will not be better the next time.
    #[default]
    Bury,
    /// It is tried again, for whoever understands it by then.
    Retry,
}

impl BadBody {
    /// What is said of it.
    pub(super) fn failure(self, problem: &str) -> Failure {
        let problem = format!("the body cannot be read: {problem}");
        match self {
            Self::Bury => Failure::Bury(problem),
            Self::Retry => Failure::Retry(problem),
        }
    }
}
