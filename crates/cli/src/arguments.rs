//! What is typed, as far as it can be checked before a server is asked.

use std::fmt;
use std::str::FromStr;

use redrive_broker::OperationId;
use redrive_core::access::KeyId;
use redrive_core::invalid::Invalid;
use redrive_core::message::MessageId;
use redrive_core::queue::QueueName;
use redrive_core::subscription::SubscriptionId;
use redrive_core::topic::{Topic, TopicPattern};

/// A queue's name. Two names that a server would take cannot be part of an address.
pub(crate) fn queue_name(text: &str) -> Result<String, String> {
    if matches!(text, "." | "..") {
        return Err("cannot be named in an address".to_owned());
    }
    QueueName::new(text).map(|name| name.as_str().to_owned()).map_err(|invalid| invalid.problem.to_string())
}

/// A topic.
pub(crate) fn topic(text: &str) -> Result<String, String> {
    id::<Topic>(text)
}

/// A pattern of topics.
pub(crate) fn topic_pattern(text: &str) -> Result<String, String> {
    id::<TopicPattern>(text)
}

/// A subscription's name. Two names that a server would take cannot be part of an address.
pub(crate) fn subscription_id(text: &str) -> Result<String, String> {
    if matches!(text, "." | "..") {
        return Err("cannot be named in an address".to_owned());
    }
    id::<SubscriptionId>(text)
}

/// A message's id.
pub(crate) fn message_id(text: &str) -> Result<String, String> {
    id::<MessageId>(text)
}

/// An operation's id.
pub(crate) fn operation_id(text: &str) -> Result<String, String> {
    id::<OperationId>(text)
}

/// An API key's id.
pub(crate) fn key_id(text: &str) -> Result<String, String> {
    id::<KeyId>(text)
}

fn id<T: FromStr<Err = Invalid> + fmt::Display>(text: &str) -> Result<String, String> {
    text.parse::<T>().map(|id| id.to_string()).map_err(|invalid| invalid.problem.to_string())
}

/// `NAME=VALUE`; the first `=` divides them.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE")?;
    if name.is_empty() {
        Err("must have a name before the =".to_owned())
    } else {
        Ok((name.to_owned(), value.to_owned()))
    }
}

/// A text for a list whose values a comma divides.
pub(crate) fn listed(text: &str) -> Result<String, String> {
    if text.contains(',') {
        Err("must have no comma; name several by naming the flag again".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// Messages a second: `100/s`.
pub(crate) fn rate(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix("/s");
    if number.is_none() && text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() {
        return Err(format!("has no unit: write {text}/s"));
    }
    let rate = number.and_then(|number| number.parse().ok()).filter(|rate| *rate > 0);
    rate.ok_or_else(|| format!("must be a number of messages a second, 1/s to {}/s", u32::MAX))
}

/// A value, or `none` for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrNone<T> {
    None,
    Some(T),
}

impl<T: FromStr<Err: fmt::Display>> FromStr for OrNone<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::None);
        }
        text.parse().map(Self::Some).map_err(|wrong| format!("{wrong}; or none for no limit"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Span;

    #[test]
    fn names_that_no_server_would_take_are_refused_here() {
        assert_eq!(queue_name("orders.eu-1_x"), Ok("orders.eu-1_x".to_owned()));
        for wrong in ["", ".", "..", "a/b", "a b", "é", &"x".repeat(81)] {
            assert!(queue_name(wrong).is_err(), "{wrong}");
        }
        assert_eq!(topic("orders.eu"), Ok("orders.eu".to_owned()));
        assert_eq!(topic_pattern("orders.**"), Ok("orders.**".to_owned()));
        assert_eq!(subscription_id("mail.eu-1_x"), Ok("mail.eu-1_x".to_owned()));
        for wrong in ["", ".", "..", "a/b", "a b", "é", &"x".repeat(65)] {
            assert!(subscription_id(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", ".", "a..b", "a/b", "orders.*"] {
            assert!(topic(wrong).is_err(), "{wrong}");
        }
        assert!(topic_pattern("ord*").unwrap_err().contains("stand for whole segments"));
        assert!(message_id("0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b").is_ok());
        assert!(operation_id("0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b").is_ok());
        assert!(key_id("00c0ffee00c0ffee").is_ok());
        for wrong in ["", "7", "../queues", "0190a1b2"] {
            assert!(
                message_id(wrong).is_err() && operation_id(wrong).is_err() && key_id(wrong).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn pairs_rates_and_limits_are_read() {
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(pair("a="), Ok(("a".to_owned(), String::new())));
        assert!(pair("a").is_err() && pair("=b").is_err());
        assert!(listed("a,b").is_err() && listed("a").is_ok());
        assert_eq!(rate("100/s"), Ok(100));
        assert_eq!(rate("100").unwrap_err(), "has no unit: write 100/s");
        for wrong in ["", "0/s", "/s", "-1/s", "1.5/s", "99999999999/s", "1/m"] {
            assert!(rate(wrong).unwrap_err().starts_with("must be a number"), "{wrong}");
        }
        assert_eq!("none".parse(), Ok(OrNone::<u32>::None));
        assert_eq!("3".parse(), Ok(OrNone::Some(3_u32)));
        assert!("x".parse::<OrNone<u32>>().unwrap_err().ends_with("or none for no limit"));
        assert!("30".parse::<OrNone<Span>>().unwrap_err().starts_with("has no unit"));
    }
}
