//! What a process says about its work, a line at a time: before each call what it asks, after it what it was told.

use std::fmt;

use redrive_core::lease::LeaseId;
use redrive_core::message::MessageId;
use redrive_core::time::Timestamp;

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// The process is about to open the store.
    Opening,
    /// A call is about to be made. Its name is the consumer of what it leases.
    Asks(String, Ask),
    /// That call was answered.
    Told(String, Answer),
    /// How many segments were cleaned since it was last told.
    Cleaned(u64),
    /// Something that must never happen.
    Wrong(String),
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ask {
    Enqueue(Vec<MessageId>),
    Lease,
    Settle(Verb, MessageId, LeaseId),
}

/// What a consumer does with a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Ack,
    Nack,
    Release,
    Bury,
    Extend,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// From when on each message may be leased.
    Enqueued(Vec<Timestamp>),
    Leased(Vec<Grant>),
    /// The message is gone.
    Gone,
    /// The message waits, and may be leased from then on.
    Waiting(Timestamp),
    Dead,
    /// The lease lasts until then.
    Extended(Timestamp),
    /// Nothing was changed.
    Refused(String),
}

/// A lease that was handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) id: MessageId,
    pub(crate) lease: LeaseId,
    pub(crate) attempts: u32,
    pub(crate) deadline: Timestamp,
    pub(crate) receipt: String,
}

impl Verb {
    const ALL: [Self; 5] = [Self::Ack, Self::Nack, Self::Release, Self::Bury, Self::Extend];

    fn word(self) -> &'static str {
        match self {
            Self::Ack => "ack",
            Self::Nack => "nack",
            Self::Release => "release",
            Self::Bury => "bury",
            Self::Extend => "extend",
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opening => f.write_str("opening"),
            Self::Asks(call, ask) => write!(f, "> {call} {ask}"),
            Self::Told(call, answer) => write!(f, "< {call} {answer}"),
            Self::Cleaned(segments) => write!(f, "cleaned {segments}"),
            Self::Wrong(text) => write!(f, "wrong {}", text.replace('\n', " ")),
        }
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enqueue(ids) => {
                f.write_str("enqueue")?;
                ids.iter().try_for_each(|id| write!(f, " {id}"))
            }
            Self::Lease => f.write_str("lease"),
            Self::Settle(verb, id, lease) => write!(f, "{} {id} {lease}", verb.word()),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enqueued(times) => {
                f.write_str("enqueued")?;
                times.iter().try_for_each(|at| write!(f, " {}", at.as_millis()))
            }
            Self::Leased(grants) => {
                f.write_str("leased")?;
                grants.iter().try_for_each(|grant| {
                    let Grant { id, lease, attempts, deadline, receipt } = grant;
                    write!(f, " {id} {lease} {attempts} {} {receipt}", deadline.as_millis())
                })
            }
            Self::Gone => f.write_str("gone"),
            Self::Waiting(from) => write!(f, "waiting {}", from.as_millis()),
            Self::Dead => f.write_str("dead"),
            Self::Extended(until) => write!(f, "extended {}", until.as_millis()),
            Self::Refused(code) => write!(f, "refused {code}"),
        }
    }
}

impl Line {
    /// Reads a line; `None` for one that was cut short.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        Some(match words.next()? {
            "opening" => Self::Opening,
            ">" => Self::Asks(words.next()?.to_owned(), Ask::parse(words.next()?, words)?),
            "<" => Self::Told(words.next()?.to_owned(), Answer::parse(words.next()?, words)?),
            "cleaned" => Self::Cleaned(words.next()?.parse().ok()?),
            "wrong" => Self::Wrong(words.collect::<Vec<_>>().join(" ")),
            _ => return None,
        })
    }
}

impl Ask {
    fn parse<'a>(verb: &str, mut words: impl Iterator<Item = &'a str>) -> Option<Self> {
        Some(match verb {
            "enqueue" => Self::Enqueue(words.map(|id| id.parse().ok()).collect::<Option<_>>()?),
            "lease" => Self::Lease,
            word => {
                let verb = Verb::ALL.into_iter().find(|verb| verb.word() == word)?;
                Self::Settle(verb, words.next()?.parse().ok()?, words.next()?.parse().ok()?)
            }
        })
    }
}

impl Answer {
    fn parse<'a>(what: &str, mut words: impl Iterator<Item = &'a str>) -> Option<Self> {
        Some(match what {
            "enqueued" => Self::Enqueued(words.map(time).collect::<Option<_>>()?),
            "leased" => {
                let words: Vec<_> = words.collect();
                Self::Leased(words.chunks(5).map(Grant::parse).collect::<Option<_>>()?)
            }
            "gone" => Self::Gone,
            "waiting" => Self::Waiting(time(words.next()?)?),
            "dead" => Self::Dead,
            "extended" => Self::Extended(time(words.next()?)?),
            "refused" => Self::Refused(words.next()?.to_owned()),
            _ => return None,
        })
    }
}

impl Grant {
    fn parse(words: &[&str]) -> Option<Self> {
        let [id, lease, attempts, deadline, receipt] = words else { return None };
        Some(Self {
            id: id.parse().ok()?,
            lease: lease.parse().ok()?,
            attempts: attempts.parse().ok()?,
            deadline: time(deadline)?,
            receipt: (*receipt).to_owned(),
        })
    }
}

fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok().map(Timestamp::from_millis)
}
