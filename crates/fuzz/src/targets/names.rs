//! Short texts: names, keys, topics, ids, receipts, errors.

use std::fmt::Display;
use std::num::NonZeroU32;
use std::str::FromStr;

use redrive_broker::{LeaseCursor, StatsCursor};
use redrive_core::access::{QueuePattern, Token};
use redrive_core::invalid::Invalid;
use redrive_core::lease::{ConsumerName, LeaseId};
use redrive_core::limits::{
    CLASS_BYTES_MAX, CONSUMER_BYTES_MAX, CONTENT_TYPE_BYTES_MAX, DEDUP_KEY_BYTES_MAX, ERROR_BYTES_MAX,
    FAIRNESS_KEY_BYTES_MAX, NOTE_BYTES_MAX, QUEUE_NAME_BYTES_MAX, RECEIPT_CHARS_MAX, SIGNAL_BYTES_MAX,
    TOPIC_BYTES_MAX, TOPIC_SEGMENTS_MAX,
};
use redrive_core::message::{
    ContentType, DedupKey, ErrorText, FairnessKey, MessageId, MessageType, Note, Source,
};
use redrive_core::policy::Fingerprint;
use redrive_core::queue::QueueName;
use redrive_core::receipt::{Claim, ReceiptKey};
use redrive_core::topic::{Topic, TopicPattern};
use redrive_store::Signal;

use super::text;
use crate::trial::note;

/// What is accepted prints as it was written, and is accepted again.
fn kept_as_written<T: FromStr<Err = Invalid> + Display + PartialEq>(
    text: &str,
    bytes_max: usize,
) -> Option<T> {
    match text.parse::<T>() {
        Ok(value) => {
            assert!(text.len() <= bytes_max, "{} bytes were accepted, the limit is {bytes_max}", text.len());
            assert_eq!(value.to_string(), text);
            assert!(text.parse::<T>().is_ok_and(|again| again == value), "it is refused the second time");
            Some(value)
        }
        Err(invalid) => {
            note(invalid);
            None
        }
    }
}

/// Names of queues.
pub fn queue_name(input: &[u8]) {
    let Some(text) = text(input) else { return };
    if kept_as_written::<QueueName>(text, QUEUE_NAME_BYTES_MAX).is_some() {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        assert!(!text.is_empty() && text.bytes().all(allowed));
    }
}

/// Patterns of queue names: two on a line each, and a name.
pub fn queue_pattern(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let mut lines = text.split('\n');
    let mut pattern =
        || kept_as_written::<QueuePattern>(lines.next().unwrap_or_default(), QUEUE_NAME_BYTES_MAX);
    let (Some(one), Some(other)) = (pattern(), pattern()) else { return };
    assert!(QueuePattern::every().covers(&one) && one.covers(&one));
    if let Ok(name) = QueueName::new(lines.next().unwrap_or_default()) {
        // What covers chooses all that the other chooses.
        assert!(!one.covers(&other) || !other.matches(&name) || one.matches(&name));
        assert!(!one.matches(&name) || one.as_str().contains('*') || one.as_str() == name.as_str());
        note(format_args!("{} {}", one.matches(&name), other.matches(&name)));
    }
}

/// Where a page ended: of leases, and of rows.
pub fn cursor(input: &[u8]) {
    fn said_again<T: FromStr<Err = Invalid> + Display + PartialEq>(text: &str) {
        match text.parse::<T>() {
            Ok(cursor) => assert!(cursor.to_string().parse::<T>().is_ok_and(|again| again == cursor)),
            Err(invalid) => note(invalid),
        }
    }
    let Some(text) = text(input) else { return };
    said_again::<LeaseCursor>(text);
    said_again::<StatsCursor>(text);
}

/// What other instances tell, or whoever else writes where they listen.
pub fn signal(input: &[u8]) {
    let Some(text) = text(input) else { return };
    match Signal::decode(text) {
        Some(signal) => {
            assert!(text.len() <= SIGNAL_BYTES_MAX && !text.contains(char::is_control));
            assert_eq!(signal.encode(), text, "there is one way to say it");
        }
        None => note(text.split(' ').nth(1).map_or(0, str::len)),
    }
}

/// What callers show.
pub fn token(input: &[u8]) {
    let Some(text) = text(input) else { return };
    match text.parse::<Token>() {
        Ok(token) => {
            assert_eq!(token.expose(), text, "there is one way to write a token");
            assert!(token.secret.hash().is_of(&token.secret));
            assert!(!format!("{token:?}").contains(&text[21..]), "secrets do not print");
        }
        Err(wrong) => note(wrong),
    }
}

/// Every other short text: the first byte says which.
pub fn text_of_a_kind(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else { return };
    let Some(text) = text(rest) else { return };
    let accepted = match kind % 7 {
        0 => kept_as_written::<MessageType>(text, CLASS_BYTES_MAX).is_some(),
        1 => kept_as_written::<Source>(text, CLASS_BYTES_MAX).is_some(),
        2 => kept_as_written::<FairnessKey>(text, FAIRNESS_KEY_BYTES_MAX).is_some(),
        3 => kept_as_written::<DedupKey>(text, DEDUP_KEY_BYTES_MAX).is_some(),
        4 => kept_as_written::<ConsumerName>(text, CONSUMER_BYTES_MAX).is_some(),
        5 => kept_as_written::<Note>(text, NOTE_BYTES_MAX).is_some(),
        _ => content_type(text),
    };
    let line_breaks = kind % 7 == 5;
    assert!(!accepted || text.chars().all(|c| !c.is_control() || line_breaks && c == '\n'));
}

fn content_type(text: &str) -> bool {
    match ContentType::new(text) {
        Ok(kept) => {
            assert!(text.len() <= CONTENT_TYPE_BYTES_MAX);
            assert_eq!(kept.as_str(), text);
            true
        }
        Err(invalid) => {
            note(invalid);
            false
        }
    }
}

/// A pattern and, on the next line, a topic.
pub fn topic(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let (pattern, topic) = text.split_once('\n').unwrap_or((text, "orders.eu.created"));
    let pattern = kept_as_written::<TopicPattern>(pattern, TOPIC_BYTES_MAX);
    let topic = kept_as_written::<Topic>(topic, TOPIC_BYTES_MAX);
    let (Some(pattern), Some(topic)) = (pattern, topic) else { return };
    assert!(pattern.as_str().split('.').count() <= TOPIC_SEGMENTS_MAX);
    assert!(topic.as_str().split('.').count() <= TOPIC_SEGMENTS_MAX);
    let matches = pattern.matches(&topic);
    note(matches);
    assert_eq!(matches, chooses(pattern.as_str(), topic.as_str()));
    let itself = TopicPattern::new(topic.as_str()).expect("every topic is a pattern");
    assert!(itself.matches(&topic));
}

/// The definition of a match as a table: `table[i]` is whether the pattern so far chooses the first `i` segments.
fn chooses(pattern: &str, topic: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    let segments: Vec<&str> = topic.split('.').collect();
    let mut table: Vec<bool> = (0..=segments.len()).map(|taken| taken == 0).collect();
    for wanted in pattern.split('.') {
        let mut next = vec![false; table.len()];
        for (taken, chosen) in table.iter().enumerate().filter(|(_, chosen)| **chosen) {
            if wanted == "**" {
                next[taken..].fill(*chosen);
            } else if segments.get(taken).is_some_and(|segment| wanted == "*" || wanted == *segment) {
                next[taken + 1] = true;
            }
        }
        table = next;
    }
    table[segments.len()]
}

/// Ids of messages. Any spelling of a UUID is read, and one is printed.
pub fn message_id(input: &[u8]) {
    let Some(text) = text(input) else { return };
    match text.parse::<MessageId>() {
        Ok(id) => {
            assert_eq!(id.to_string().len(), 36);
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(MessageId::from_bytes(*id.as_bytes()), id);
        }
        Err(invalid) => note(invalid),
    }
}

/// Fencing tokens.
pub fn lease_id(input: &[u8]) {
    let Some(text) = text(input) else { return };
    match text.parse::<LeaseId>() {
        Ok(id) => {
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(LeaseId::from_bits(id.bits()), id);
        }
        Err(invalid) => note(invalid),
    }
}

fn our_key() -> ReceiptKey {
    ReceiptKey::new([7; 32])
}

/// Receipts: as somebody wrote them, and those that we seal for what the input says, whole and with one byte changed.
pub fn receipt(input: &[u8]) {
    if let Some(text) = text(input) {
        match our_key().open(text) {
            Ok(claim) => {
                assert!(text.len() <= RECEIPT_CHARS_MAX);
                assert_eq!(our_key().seal(&claim), text, "two receipts say the same");
                note("opened");
            }
            Err(invalid) => note(invalid),
        }
    }
    let Some((claim, change)) = claim(input) else { return };
    let sealed = our_key().seal(&claim);
    assert_eq!(our_key().open(&sealed).as_ref(), Ok(&claim));
    let [at, value] = change.to_le_bytes();
    let mut forged = sealed.clone().into_bytes();
    let at = usize::from(at) % forged.len();
    forged[at] = value;
    if let Ok(forged) = String::from_utf8(forged)
        && forged != sealed
    {
        assert!(our_key().open(&forged).is_err(), "a forged receipt is opened: {forged}");
    }
}

/// What an input says about a claim, and how it wants to have the receipt changed.
fn claim(input: &[u8]) -> Option<(Claim, u16)> {
    let (message, rest) = input.split_first_chunk()?;
    let (lease, rest) = rest.split_first_chunk()?;
    let (attempts, rest) = rest.split_first_chunk()?;
    let (deliveries, rest) = rest.split_first_chunk()?;
    let (max_attempts, rest) = rest.split_first_chunk()?;
    let (change, queue) = rest.split_first_chunk()?;
    let claim = Claim {
        queue: QueueName::new(text(queue)?).ok()?,
        message: MessageId::from_bytes(*message),
        lease: LeaseId::from_bits(u64::from_le_bytes(*lease)),
        attempts: u32::from_le_bytes(*attempts),
        deliveries: u32::from_le_bytes(*deliveries),
        max_attempts: NonZeroU32::new(u32::from_le_bytes(*max_attempts)),
    };
    Some((claim, u16::from_le_bytes(*change)))
}

/// Errors of consumers, which are cut and never refused.
pub fn error_text(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let kept = ErrorText::new(&text);
    assert!(kept.as_str().len() <= ERROR_BYTES_MAX && !kept.as_str().contains('\0'));
    assert!(text.replace('\0', " ").starts_with(kept.as_str()));
    assert!(text.len() > ERROR_BYTES_MAX || kept.as_str().len() == text.len());
    assert_eq!(ErrorText::new(kept.as_str()), kept);
}

/// Groups of errors: other digits are the same group, and a group is read as it is printed.
pub fn fingerprint(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let group = Fingerprint::of(&text);
    assert_eq!(group.to_string().parse(), Ok(group));
    assert_eq!(Fingerprint::from_bits(group.to_bits()), group);
    let next = |c: char| c.to_digit(10).map_or(c, |digit| char::from(b"1234567890"[digit as usize]));
    let others: String = text.chars().map(next).collect();
    assert_eq!(Fingerprint::of(&others), group, "{text:?} and {others:?} are of different groups");
    match text.parse::<Fingerprint>() {
        Ok(read) => assert_eq!(read.to_string(), text.to_ascii_lowercase()),
        Err(invalid) => note(invalid),
    }
}
