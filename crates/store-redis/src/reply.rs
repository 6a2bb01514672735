//! What the server answers, read piece by piece.

use bytes::Bytes;
use redis::Value;
use redrive_core::message::MessageId;
use redrive_core::time::Timestamp;
use redrive_store::StoreError;

use crate::error::damaged;

/// An answer of several pieces.
#[derive(Debug)]
pub(crate) struct Reply(std::vec::IntoIter<Value>);

impl Reply {
    pub(crate) fn of(value: Value) -> Result<Self, StoreError> {
        match value {
            Value::Array(items) | Value::Set(items) => Ok(Self(items.into_iter())),
            Value::Nil => Ok(Self(Vec::new().into_iter())),
            other => Err(strange(&other)),
        }
    }

    /// What a script says of an item: several pieces, or one; that is a letter where it was refused, and otherwise its line.
    pub(crate) fn of_item(item: Value, class: Value) -> Result<Self, StoreError> {
        match item {
            Value::BulkString(line) if line.len() > 1 => {
                let done = Value::SimpleString("e".to_owned());
                Ok(Self(vec![done, class, Value::BulkString(line)].into_iter()))
            }
            letter @ Value::BulkString(_) => Ok(Self(vec![letter].into_iter())),
            several => Self::of(several),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn next(&mut self) -> Value {
        self.0.next().unwrap_or(Value::Nil)
    }

    pub(crate) fn text(&mut self) -> Result<String, StoreError> {
        text(self.next())
    }

    /// A text, or nothing.
    pub(crate) fn maybe(&mut self) -> Result<Option<String>, StoreError> {
        match self.next() {
            Value::Nil | Value::Boolean(false) => Ok(None),
            value => text(value).map(Some),
        }
    }

    pub(crate) fn number(&mut self) -> Result<u64, StoreError> {
        number(self.next())
    }

    pub(crate) fn time(&mut self) -> Result<Timestamp, StoreError> {
        self.number().map(Timestamp::from_millis)
    }

    /// A time, or nothing, which is an empty text.
    pub(crate) fn maybe_time(&mut self) -> Result<Option<Timestamp>, StoreError> {
        let text = self.text()?;
        if text.is_empty() { Ok(None) } else { parsed(&text).map(|ms| Some(Timestamp::from_millis(ms))) }
    }

    pub(crate) fn bytes(&mut self) -> Result<Bytes, StoreError> {
        match self.next() {
            Value::BulkString(bytes) => Ok(Bytes::from(bytes)),
            other => Err(strange(&other)),
        }
    }

    pub(crate) fn id(&mut self) -> Result<MessageId, StoreError> {
        read_id(&self.text()?)
    }

    pub(crate) fn reply(&mut self) -> Result<Self, StoreError> {
        Self::of(self.next())
    }

    pub(crate) fn replies(&mut self) -> Result<Vec<Self>, StoreError> {
        self.reply()?.0.map(Self::of).collect()
    }

    pub(crate) fn texts(self) -> Result<Vec<String>, StoreError> {
        self.0.map(text).collect()
    }
}

pub(crate) fn read_id(text: &str) -> Result<MessageId, StoreError> {
    text.parse().map_err(|_| damaged("an id", text))
}

pub(crate) fn text(value: Value) -> Result<String, StoreError> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).map_err(|error| damaged("a text", error)),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Ok(text),
        Value::Int(number) => Ok(number.to_string()),
        Value::Double(number) => Ok(number.to_string()),
        Value::Okay => Ok("OK".to_owned()),
        other => Err(strange(&other)),
    }
}

pub(crate) fn number(value: Value) -> Result<u64, StoreError> {
    match value {
        Value::Int(number) => u64::try_from(number).map_err(|error| damaged("a number", error)),
        other => parsed(&text(other)?),
    }
}

fn parsed(text: &str) -> Result<u64, StoreError> {
    text.parse().map_err(|_| damaged("a number", text))
}

fn strange(value: &Value) -> StoreError {
    damaged("an answer", format!("{value:?}"))
}
