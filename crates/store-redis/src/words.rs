//! How a message is written down: where it stands as one line of words, as `scripts/base.lua` has it, and beside it its content, its
//! failures and what else is kept of it.
//!
//! Lines are for people, too: `HGET redrive:{7}:p 0199…` says where a message stands. `%XX` stands for white space and for `%`.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::num::NonZeroU32;

use bytes::Bytes;
use redrive_core::lease::{ConsumerName, Lease, LeaseId};
use redrive_core::lifecycle::When;
use redrive_core::message::{
    AttemptRecord, Body, Cause, Checkpoint, ContentType, DeadReason, Death, Dedup, DedupKey, ErrorText,
    FairnessKey, Headers, History, Message, MessageId, MessageType, Note, Phase, Priority, Progress,
    RedriveNote, Source, Spec, Uniqueness,
};
use redrive_core::policy::{DelayRule, Fingerprint};
use redrive_core::queue::QueueName;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::StoreError;
use serde_json::{Map, Value};

use crate::error::damaged;

/// A text as one word.
pub(crate) fn escape(text: &str) -> String {
    let mut word = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '%' || c.is_ascii_control() || c == ' ' {
            write!(word, "%{:02x}", u32::from(c)).expect("a string takes everything");
        } else {
            word.push(c);
        }
    }
    word
}

/// The text that a word stands for; `None` where nobody here wrote it.
pub(crate) fn unescape(word: &str) -> Option<String> {
    let mut text = String::with_capacity(word.len());
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('%') {
        text.push_str(before);
        text.push(char::from(u8::from_str_radix(after.get(..2)?, 16).ok()?));
        rest = after.get(2..)?;
    }
    text.push_str(rest);
    Some(text)
}

/// A type and a source, as the name of their class.
pub(crate) fn pair(kind: &MessageType, source: &Source) -> String {
    format!("{} {}", escape(kind.as_str()), escape(source.as_str()))
}

/// The type and the source of a class.
pub(crate) fn read_pair(pair: &str) -> Result<(MessageType, Source), StoreError> {
    let read = || {
        let (kind, source) = pair.split_once(' ')?;
        Some((MessageType::new(unescape(kind)?).ok()?, Source::new(unescape(source)?).ok()?))
    };
    read().ok_or_else(|| damaged("a class", pair))
}

/// A fairness key as a word, which is never empty.
pub(crate) fn key_word(key: &FairnessKey) -> String {
    format!(":{}", escape(key.as_str()))
}

/// A consumer as a word, which is never empty.
pub(crate) fn consumer_word(consumer: &ConsumerName) -> String {
    format!(":{}", escape(consumer.as_str()))
}

pub(crate) fn read_consumer(word: &str) -> Result<ConsumerName, StoreError> {
    let read = || ConsumerName::new(unescape(word.strip_prefix(':')?)?).ok();
    read().ok_or_else(|| damaged("a consumer", word))
}

/// A lease as a word: sixteen digits, so that words sort as leases do.
pub(crate) fn lease_word(lease: LeaseId) -> String {
    format!("{:016x}", lease.bits())
}

pub(crate) fn print_word(print: Fingerprint) -> String {
    format!("{:016x}", print.to_bits())
}

pub(crate) fn read_print(word: &str) -> Result<Fingerprint, StoreError> {
    u64::from_str_radix(word, 16).map(Fingerprint::from_bits).map_err(|_| damaged("a fingerprint", word))
}

pub(crate) fn read_reason(word: &str) -> Result<DeadReason, StoreError> {
    let known = DeadReason::ALL.into_iter().find(|reason| reason.name() == word);
    known.ok_or_else(|| damaged("a reason", word))
}

/// A time as a caller names it.
pub(crate) fn when_word(when: When) -> String {
    match when {
        When::Now => "@0".to_owned(),
        When::After(delay) => format!("+{}", delay.get()),
        When::At(time) => format!("@{}", time.as_millis()),
    }
}

pub(crate) fn rule_word(rule: DelayRule) -> &'static str {
    rule.name()
}

fn read_rule(word: &str) -> Option<DelayRule> {
    [DelayRule::Backoff, DelayRule::AtLeast, DelayRule::Exactly, DelayRule::Overdue]
        .into_iter()
        .find(|rule| rule.name() == word)
}

pub(crate) fn cause_word(cause: Cause) -> &'static str {
    match cause {
        Cause::Nack => "n",
        Cause::Expire => "e",
        Cause::Bury => "b",
    }
}

fn read_cause(word: &str) -> Option<Cause> {
    [Cause::Nack, Cause::Expire, Cause::Bury].into_iter().find(|cause| cause_word(*cause) == word)
}

/// A number that may be missing.
pub(crate) fn maybe(number: Option<u64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

/// What a line of words says.
#[derive(Debug, Clone)]
pub(crate) struct Words {
    progress: Progress,
    max_attempts: Option<NonZeroU32>,
    lease_timeout: Option<Millis>,
    pub(crate) load: usize,
    created_at: Timestamp,
    key: FairnessKey,
}

impl Words {
    pub(crate) fn read(line: &str) -> Result<Self, StoreError> {
        Self::parse(line).ok_or_else(|| damaged("a message", line))
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let phase = words.next()?;
        let visible_at = time(words.next()?)?;
        let sequence = words.next()?.parse().ok()?;
        let priority = Priority::new(words.next()?.parse().ok()?).ok()?;
        let expires_at = missing(words.next()?, time)?;
        let mut number = || words.next()?.parse::<u32>().ok();
        let (attempts, deliveries, deliveries_before, redrives) =
            (number()?, number()?, number()?, number()?);
        let max_attempts = missing(words.next()?, |word| NonZeroU32::new(word.parse().ok()?))?;
        let lease_timeout = missing(words.next()?, |word| word.parse().ok().map(Millis::new))?;
        let _class: u64 = words.next()?.parse().ok()?;
        let load = words.next()?.parse().ok()?;
        let created_at = time(words.next()?)?;
        let _kept = words.next()?;
        let key = FairnessKey::new(unescape(words.next()?.strip_prefix(':')?)?).ok()?;
        // A capital is a message on its way to another node: to whoever looks it is where it was.
        let phase = match phase.to_ascii_lowercase().as_str() {
            "d" | "r" => Phase::Waiting,
            "l" => {
                let id = LeaseId::from_bits(u64::from_str_radix(words.next()?, 16).ok()?);
                let (leased_at, deadline) = (time(words.next()?)?, time(words.next()?)?);
                let _entry = words.next()?;
                let consumer = read_consumer(words.next()?).ok()?;
                Phase::Leased(Lease { id, consumer, leased_at, deadline })
            }
            "x" => Phase::Dead(death(words.next()?, words.next()?, words.next()?)?),
            "k" => Phase::Done(time(words.next()?)?),
            _ => return None,
        };
        let progress = Progress {
            phase,
            visible_at,
            sequence,
            priority,
            expires_at,
            attempts,
            deliveries,
            deliveries_before,
            redrives,
        };
        Some(Self { progress, max_attempts, lease_timeout, load, created_at, key })
    }

    /// Which attempt it is, and under which lease.
    pub(crate) fn attempt(self) -> Option<(u32, Lease)> {
        match self.progress.phase {
            Phase::Leased(lease) => Some((self.progress.attempts, lease)),
            _ => None,
        }
    }

    /// The message that they are about, without its content.
    pub(crate) fn message(
        self,
        queue: &QueueName,
        id: MessageId,
        (kind, source): (MessageType, Source),
    ) -> Message {
        Message {
            queue: queue.clone(),
            spec: Spec {
                id,
                body: Body::default(),
                content_type: ContentType::default(),
                headers: Headers::default(),
                kind,
                source,
                fairness_key: self.key,
                dedup: None,
                lease_timeout: self.lease_timeout,
                max_attempts: self.max_attempts,
            },
            created_at: self.created_at,
            progress: self.progress,
            history: History::default(),
            origin_queue: None,
        }
    }
}

fn time(word: &str) -> Option<Timestamp> {
    word.parse().ok().map(Timestamp::from_millis)
}

/// A word that may be missing; `None` where it is wrong.
#[expect(clippy::option_option, reason = "wrong and missing are two things")]
fn missing<T>(word: &str, read: impl FnOnce(&str) -> Option<T>) -> Option<Option<T>> {
    if word == "-" { Some(None) } else { read(word).map(Some) }
}

fn death(reason: &str, at: &str, print: &str) -> Option<Death> {
    Some(Death { reason: read_reason(reason).ok()?, at: time(at)?, fingerprint: read_print(print).ok()? })
}

/// The content of a message as it is kept: a line of JSON, and the body behind it.
pub(crate) fn content(spec: &Spec) -> Vec<u8> {
    let mut map = Map::new();
    let mut put = |name: &str, value: &str| {
        if !value.is_empty() {
            map.insert(name.to_owned(), value.into());
        }
    };
    put("type", spec.kind.as_str());
    put("source", spec.source.as_str());
    put("content_type", spec.content_type.as_str());
    if spec.headers.size() > 0 {
        let headers = spec.headers.iter().map(|(name, value)| (name.to_owned(), Value::from(value)));
        map.insert("headers".to_owned(), Value::Object(headers.collect()));
    }
    let mut bytes = Value::Object(map).to_string().into_bytes();
    bytes.push(b'\n');
    bytes.extend_from_slice(spec.body.bytes());
    bytes
}

/// Puts the content into a message.
pub(crate) fn read_content(message: &mut Message, bytes: &Bytes) -> Result<(), StoreError> {
    let read = || -> Option<(Value, Bytes)> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let head = serde_json::from_slice(bytes.get(..end)?).ok()?;
        Some((head, bytes.slice(end + 1..)))
    };
    let wrong = |problem: String| damaged("the content of a message", problem);
    let (head, body) = read().ok_or_else(|| wrong("it has no head".to_owned()))?;
    let text = |name: &str| head.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let spec = &mut message.spec;
    spec.kind = MessageType::new(text("type")).map_err(|error| wrong(error.to_string()))?;
    spec.source = Source::new(text("source")).map_err(|error| wrong(error.to_string()))?;
    if let Some(kind) = head.get("content_type").and_then(Value::as_str) {
        spec.content_type = ContentType::new(kind).map_err(|error| wrong(error.to_string()))?;
    }
    if let Some(headers) = head.get("headers").and_then(Value::as_object) {
        let pairs =
            headers.iter().map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()));
        spec.headers = Headers::new(pairs).map_err(|error| wrong(error.to_string()))?;
    }
    spec.body = Body::within(body, usize::MAX).map_err(|error| wrong(error.to_string()))?;
    Ok(())
}

/// Puts what is kept under a letter into a message.
pub(crate) fn read_kept(message: &mut Message, letter: &str, value: &Bytes) -> Result<(), StoreError> {
    let wrong = || damaged(format!("what is kept under {letter}"), String::from_utf8_lossy(value));
    let text = || std::str::from_utf8(value).map_err(|_| wrong());
    let history = &mut message.history;
    match letter {
        "f" => {
            history.failures = read_failures(text()?)?;
            history.last_error = history.failures.back().map(|failure| failure.error.clone());
        }
        "c" => history.checkpoint = Some(Checkpoint::new(value.clone()).map_err(|_| wrong())?),
        "n" => history.redriven = Some(read_note(text()?).ok_or_else(wrong)?),
        "h" => {
            let mut words = text()?.split(' ');
            let mut word = || words.next().unwrap_or_default();
            history.death = Some(death(word(), word(), word()).ok_or_else(wrong)?);
        }
        "o" => message.origin_queue = Some(QueueName::new(text()?).map_err(|_| wrong())?),
        "w" | "u" => {
            let unique = if letter == "u" { Uniqueness::UntilDone } else { Uniqueness::Window };
            message.spec.dedup = Some(Dedup { key: DedupKey::new(text()?).map_err(|_| wrong())?, unique });
        }
        _ => return Err(wrong()),
    }
    Ok(())
}

/// The failures of a message, the oldest first.
pub(crate) fn read_failures(lines: &str) -> Result<VecDeque<AttemptRecord>, StoreError> {
    lines.lines().map(|line| failure(line).ok_or_else(|| damaged("a failure", line))).collect()
}

/// The error of the last failure.
pub(crate) fn last_error(failures: Option<&str>) -> Result<Option<ErrorText>, StoreError> {
    let Some(line) = failures.and_then(|lines| lines.lines().last()) else { return Ok(None) };
    failure(line).map(|failure| Some(failure.error)).ok_or_else(|| damaged("a failure", line))
}

fn failure(line: &str) -> Option<AttemptRecord> {
    let mut words = line.split(' ');
    let attempt = words.next()?.parse().ok()?;
    let (leased_at, ended_at) = (time(words.next()?)?, time(words.next()?)?);
    let cause = read_cause(words.next()?)?;
    let (delay, rule) = (words.next()?, words.next()?);
    let consumer = read_consumer(words.next()?).ok()?;
    let error = ErrorText::new(unescape(words.next()?.strip_prefix(':')?)?);
    let delay = if delay == "-" { None } else { Some((Millis::new(delay.parse().ok()?), read_rule(rule)?)) };
    Some(AttemptRecord { attempt, consumer, leased_at, ended_at, cause, error, delay })
}

/// An error as a word, which is never empty.
pub(crate) fn error_word(error: &ErrorText) -> String {
    format!(":{}", escape(error.as_str()))
}

/// Who asked for a redrive and why, as it is written behind the time.
pub(crate) fn note_words(by: &Note, reason: &Note) -> String {
    format!(":{} :{}", escape(by.as_str()), escape(reason.as_str()))
}

fn read_note(words: &str) -> Option<RedriveNote> {
    let mut words = words.split(' ');
    let at = time(words.next()?)?;
    let mut note = || Note::new(unescape(words.next()?.strip_prefix(':')?)?).ok();
    Some(RedriveNote { at, by: note()?, reason: note()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_a_word_and_comes_back() {
        for text in ["", " ", "a b", "100 %", "%20", "line\nbreak\ttab", "é 🦀", "\u{7f}"] {
            let word = escape(text);
            assert!(!word.contains(|c: char| c.is_ascii_whitespace() || c.is_ascii_control()), "{word:?}");
            assert_eq!(unescape(&word).as_deref(), Some(text));
        }
        assert_eq!(unescape("%"), None);
        assert_eq!(unescape("%zz"), None);
    }

    #[test]
    fn a_line_that_nobody_wrote_is_damage() {
        for line in ["", "r", "q 1 2 3 - 0 0 0 0 - - 1 1 1 - :", "r 1 2 33 - 0 0 0 0 - - 1 1 1 - :"] {
            assert!(Words::read(line).is_err(), "{line:?}");
        }
        let words = Words::read("r 5 2 3 - 0 1 0 0 7 - 1 10 4 fc :a%20b").unwrap();
        assert_eq!((words.progress.deliveries, words.load), (1, 10));
        assert_eq!(words.key, FairnessKey::new("a b").unwrap());
    }
}
