//! What may be set for topics: how their events are dispatched, and for how long they are kept.

use std::time::Duration;

use redrive_bus::{Dispatch, TopicConfig, TopicSettings};

use super::EventBus;
use crate::convert;
use crate::error::Error;

/// What is set for the topics of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// For which topics. Where several patterns match one, the most particular counts.
    pub pattern: String,
    /// Whether handlers run one after another, in the order in which they subscribed.
    pub sequential: bool,
    /// For how long events can be replayed; `None` is not at all.
    pub retain: Option<Duration>,
    /// The queue in which events wait, where handlers run one after another.
    pub queue: Option<String>,
}

impl From<TopicSettings> for Topic {
    fn from(settings: TopicSettings) -> Self {
        let queue = settings.sequence_queue().as_str().to_owned();
        let TopicConfig { pattern, dispatch, retain } = settings.config;
        let sequential = dispatch == Dispatch::Sequential;
        Self {
            pattern: pattern.as_str().to_owned(),
            sequential,
            retain: retain.map(convert::duration),
            queue: sequential.then_some(queue),
        }
    }
}

/// Sets something for the topics of a pattern; [`EventBus::topic`] makes one.
#[derive(Debug, Clone)]
#[must_use = "nothing is set before `set` is called"]
pub struct TopicBuilder {
    bus: EventBus,
    pattern: String,
    dispatch: Dispatch,
    retain: Option<Duration>,
}

impl TopicBuilder {
    pub(super) fn new(bus: EventBus, pattern: &str) -> Self {
        Self { bus, pattern: pattern.to_owned(), dispatch: Dispatch::Independent, retain: None }
    }

    /// Handlers run one after another, in the order in which they subscribed. One that fails is the first to run when the event
    /// comes back; those before it have it already, and do not get it again. One retry policy holds for all of them, the most
    /// permissive of what they ask for.
    pub fn sequential(self) -> Self {
        Self { dispatch: Dispatch::Sequential, ..self }
    }

    /// Events are kept for this long, and can be replayed.
    pub fn retain(self, time: Duration) -> Self {
        Self { retain: Some(time), ..self }
    }

    /// Sets it, for events that are published from now on. What was not said goes back to the defaults.
    pub async fn set(self) -> Result<Topic, Error> {
        let config = TopicConfig {
            pattern: self.pattern.parse()?,
            dispatch: self.dispatch,
            retain: self.retain.map(convert::millis),
        };
        Ok(self.bus.bus().await?.set_topic(config, None).await?.into())
    }
}

impl EventBus {
    /// Everything that is set for topics, by pattern.
    pub async fn topics(&self) -> Result<Vec<Topic>, Error> {
        Ok(self.bus().await?.topics().await?.into_iter().map(Topic::from).collect())
    }

    /// Forgets what is set for a pattern, and the events that were kept. Events that wait for their handlers keep it from
    /// going, unless by force.
    pub async fn delete_topic(&self, pattern: &str, force: bool) -> Result<(), Error> {
        Ok(self.bus().await?.delete_topic(&pattern.parse()?, force).await?)
    }
}
