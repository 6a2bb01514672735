//! What instances on the same data tell each other: look here, forget that.
//!
//! A signal is a hint and never the truth: the store's own rows are. Whoever misses one finds the same a little later by
//! looking, so signals may be lost; they may also come late, twice and in any order.
//!
//! Every store carries the same text: the version, a word, and what it is about, separated by single spaces, such as
//! `1 ready orders`. It has no control characters, so a store may join several with newlines, and is at most
//! [`SIGNAL_BYTES_MAX`] long, so that one and the name of its sender fit where a database carries less than 8,000 bytes.

use std::fmt::{self, Debug};

use async_trait::async_trait;
use redrive_core::invalid::{Invalid, Problem};
use redrive_core::limits::SIGNAL_BYTES_MAX;
use redrive_core::queue::QueueName;

use crate::registry::{EntryKey, EntryKind, EntryName};

const VERSION: &str = "1";
/// What a signal says beside its notice: a version, a word, and the spaces between.
const HEAD_BYTES: usize = "1 notice ".len();

/// What an instance tells the others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Something is ready in that queue, or will be at a time that nobody knew: whoever waits for it may look.
    Ready(QueueName),
    /// That queue was created, changed, paused, resumed or deleted.
    Queue(QueueName),
    /// That entry of the registry was written or deleted.
    Entry(EntryKey),
    /// Something that happened, for those who watch.
    Notice(Notice),
}

/// Text that the layer above wrote for its like at other instances; nobody here looks into it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Notice(String);

impl Notice {
    /// The longest, in bytes.
    pub const BYTES_MAX: usize = SIGNAL_BYTES_MAX - HEAD_BYTES;

    /// Refuses what does not fit into a signal, and control characters.
    pub fn new(text: impl Into<String>) -> Result<Self, Invalid> {
        let text = text.into();
        Invalid::check_length("notice", text.len(), Self::BYTES_MAX, "bytes")?;
        match text.char_indices().find(|(_, c)| c.is_control()) {
            Some((at, _)) => {
                let allowed = "text without control characters";
                Err(Invalid::new("notice", Problem::BadCharacter { at, allowed }))
            }
            None => Ok(Self(text)),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(queue) => write!(f, "{VERSION} ready {queue}"),
            Self::Queue(queue) => write!(f, "{VERSION} queue {queue}"),
            Self::Entry(key) => write!(f, "{VERSION} entry {} {}", key.kind.name(), key.name.as_str()),
            Self::Notice(notice) => write!(f, "{VERSION} notice {}", notice.as_str()),
        }
    }
}

impl Signal {
    /// The text that a store carries.
    pub fn encode(&self) -> String {
        self.to_string()
    }

    /// What that text says. `None` is what nobody of this version wrote: an older or a newer instance, or somebody else
    /// who may write to the same channel. Nothing follows from it.
    pub fn decode(text: &str) -> Option<Self> {
        if text.len() > SIGNAL_BYTES_MAX {
            return None;
        }
        let (word, rest) = text.strip_prefix(VERSION)?.strip_prefix(' ')?.split_once(' ')?;
        match word {
            "ready" => QueueName::new(rest).ok().map(Self::Ready),
            "queue" => QueueName::new(rest).ok().map(Self::Queue),
            "entry" => {
                let (kind, name) = rest.split_once(' ')?;
                let kind = EntryKind::ALL.into_iter().find(|known| known.name() == kind)?;
                Some(Self::Entry(EntryKey { kind, name: EntryName::new(name).ok()? }))
            }
            "notice" => Notice::new(rest).ok().map(Self::Notice),
            _ => None,
        }
    }
}

/// What an instance hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// Another instance told this.
    Signal(Signal),
    /// Signals may have been missed: anything may have happened.
    Lost,
}

/// An instance that listens to the others.
#[async_trait]
pub trait Listener: Debug + Send {
    /// The next thing heard. The first is always [`Heard::Lost`], as soon as the store listens: from then on nothing is
    /// missed unless that is said again, as after a connection that was cut. Dropping the future loses nothing.
    async fn hear(&mut self) -> Heard;
}

#[cfg(test)]
mod tests {
    use redrive_core::limits::{QUEUE_NAME_BYTES_MAX, REGISTRY_KEY_BYTES_MAX};

    use super::*;

    fn entry(kind: EntryKind, name: &str) -> Signal {
        Signal::Entry(EntryKey { kind, name: EntryName::new(name).unwrap() })
    }

    fn queue(name: &str) -> QueueName {
        QueueName::new(name).unwrap()
    }

    #[test]
    fn a_signal_is_read_as_it_was_written_and_always_fits() {
        let longest = "n".repeat(REGISTRY_KEY_BYTES_MAX);
        let mut all = vec![
            Signal::Ready(queue("orders")),
            Signal::Queue(queue(&"Q".repeat(QUEUE_NAME_BYTES_MAX))),
            Signal::Ready(queue("-._09azAZ")),
            entry(EntryKind::Lock, " a name  with spaces, ümlauts and 🦀 "),
            Signal::Notice(Notice::new(r#"{"type":"ack"}"#).unwrap()),
            Signal::Notice(Notice::new("").unwrap()),
            Signal::Notice(Notice::new("x".repeat(Notice::BYTES_MAX)).unwrap()),
        ];
        all.extend(EntryKind::ALL.map(|kind| entry(kind, &longest)));
        for signal in all {
            let text = signal.encode();
            assert!(text.len() <= SIGNAL_BYTES_MAX && !text.contains(char::is_control), "{text}");
            assert_eq!(Signal::decode(&text), Some(signal));
        }
    }

    #[test]
    fn the_text_is_pinned_because_instances_of_two_versions_meet() {
        assert_eq!(Signal::Ready(queue("orders")).encode(), "1 ready orders");
        assert_eq!(Signal::Queue(queue("orders")).encode(), "1 queue orders");
        assert_eq!(entry(EntryKind::ApiKey, "ab 12").encode(), "1 entry api_key ab 12");
        assert_eq!(Signal::Notice(Notice::new("{}").unwrap()).encode(), "1 notice {}");
    }

    #[test]
    fn what_nobody_wrote_says_nothing() {
        let long = format!("1 notice {}", "x".repeat(SIGNAL_BYTES_MAX));
        let foreign = [
            "",
            "1",
            "1 ",
            "1 ready",
            "1 ready ",
            "1 ready two words",
            "1 ready orders\n",
            "2 ready orders",
            "11 ready orders",
            "1  ready orders",
            "1 READY orders",
            "1 entry lock",
            "1 entry lock ",
            "1 entry door a",
            "1 notice \u{0}",
            "1 gossip orders",
            long.as_str(),
        ];
        for text in foreign {
            assert_eq!(Signal::decode(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_notice_is_short_and_has_no_control_characters() {
        assert!(Notice::new("x".repeat(SIGNAL_BYTES_MAX)).is_err());
        assert_eq!(Notice::new("a\nb").unwrap_err().field, "notice");
    }
}
