//! What may be set for topics: how their events are dispatched, and for how long they are kept.

use std::cmp::Reverse;

use redrive_core::invalid::Invalid;
use redrive_core::limits::RETENTION_MAX;
use redrive_core::queue::QueueName;
use redrive_core::subscription::sequence_queue;
use redrive_core::time::{Millis, Timestamp};
use redrive_core::topic::{Topic, TopicPattern};
use redrive_store::LogName;

/// In which way an event reaches several subscriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dispatch {
    /// Each by itself, with retries, a breaker and dead letters of its own.
    #[default]
    Independent,
    /// One after another, in the order of their creation, with one policy for all of them.
    Sequential,
}

impl Dispatch {
    /// Every way.
    pub const ALL: [Self; 2] = [Self::Independent, Self::Sequential];

    /// The word in APIs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Independent => "independent",
            Self::Sequential => "sequential",
        }
    }

    /// The way of that name.
    pub fn named(name: &str) -> Result<Self, Invalid> {
        let found = Self::ALL.into_iter().find(|dispatch| dispatch.name() == name);
        found.ok_or_else(|| Invalid::unusable("dispatch", "must be independent or sequential"))
    }
}

/// What may be set for the topics of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicConfig {
    /// For which topics. Where several patterns match a topic, the most particular one counts.
    pub pattern: TopicPattern,
    /// How their events are dispatched.
    pub dispatch: Dispatch,
    /// For how long their events can be replayed; `None` is not at all.
    pub retain: Option<Millis>,
}

impl TopicConfig {
    /// Refuses a retention beyond its limit.
    pub fn check(&self) -> Result<(), Invalid> {
        match self.retain {
            Some(retain) => retain.within("retain", Millis::new(1), RETENTION_MAX).map(|_| ()),
            None => Ok(()),
        }
    }
}

/// What is set for the topics of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicSettings {
    /// What was set.
    pub config: TopicConfig,
    /// Its number, which no other pattern ever had.
    pub number: u64,
    /// Whether its events were ever dispatched one handler after another: some may still be on their way.
    pub sequenced: bool,
    /// Raised by every change; an update names the version it saw.
    pub version: u64,
    /// When it was first set.
    pub created_at: Timestamp,
}

impl TopicSettings {
    /// The queue of events that are dispatched one handler after another.
    pub fn sequence_queue(&self) -> QueueName {
        sequence_queue(self.number)
    }

    /// The log of events that can be replayed.
    pub(crate) fn log(&self) -> LogName {
        LogName::new(format!("topic.{:x}", self.number)).expect("a short name")
    }
}

/// How particular a pattern is, for comparisons: the smallest is the most particular. Segment by segment, a name is more
/// particular than `*`, that than the end of the pattern, and that than `**`.
pub(crate) fn generality(pattern: &TopicPattern) -> (Vec<u8>, Reverse<&str>) {
    const END: u8 = 2;
    let lone = pattern.as_str() == "*";
    let rank = |segment: &str| match segment {
        "**" => 3,
        "*" if lone => 3,
        "*" => 1,
        _ => 0,
    };
    (pattern.as_str().split('.').map(rank).chain([END]).collect(), Reverse(pattern.as_str()))
}

/// What is set for a topic: by the most particular pattern that matches it.
pub(crate) fn of_topic<'a>(
    all: impl Iterator<Item = &'a TopicSettings>,
    topic: &Topic,
) -> Option<&'a TopicSettings> {
    let matching = all.filter(|settings| settings.config.pattern.matches(topic));
    matching.min_by(|one, other| generality(&one.config.pattern).cmp(&generality(&other.config.pattern)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pattern: &str) -> TopicSettings {
        let config =
            TopicConfig { pattern: pattern.parse().unwrap(), dispatch: Dispatch::default(), retain: None };
        TopicSettings { config, number: 1, sequenced: false, version: 1, created_at: Timestamp::EPOCH }
    }

    #[test]
    fn the_most_particular_pattern_counts() {
        let all: Vec<TopicSettings> =
            ["*", "**.b", "a.**", "a.*", "*.b", "a.**.c", "a.b"].into_iter().map(settings).collect();
        for (topic, chosen) in [
            ("a.b", "a.b"),
            ("a.x", "a.*"),
            ("x.b", "*.b"),
            ("x.y.b", "**.b"),
            ("a.x.y", "a.**"),
            ("a.x.c", "a.**.c"),
            ("a", "a.**"),
            ("z", "*"),
        ] {
            let found = of_topic(all.iter(), &topic.parse().unwrap()).unwrap();
            assert_eq!(found.config.pattern.as_str(), chosen, "{topic}");
        }
        assert!(of_topic([].iter(), &"a".parse().unwrap()).is_none());
    }

    #[test]
    fn retention_has_a_limit() {
        let config = TopicConfig { retain: Some(Millis::ZERO), ..settings("a").config };
        assert_eq!(config.check().unwrap_err().field, "retain");
    }
}
