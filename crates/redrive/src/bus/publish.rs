//! An event on its way in.

use bytes::Bytes;
use redrive_bus::BusError;
use redrive_core::message::{Body, ContentType, Headers};
use redrive_core::topic::Topic;
use serde::Serialize;

use super::EventBus;
use crate::error::Error;

/// What the headers of attributes begin with, as CloudEvents has them in HTTP.
pub(super) const ATTRIBUTE_PREFIX: &str = "ce-";

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Its id; that of the first one, where it was published before.
    pub id: String,
    /// How many subscriptions it goes to.
    pub subscriptions: usize,
    /// Whether all of them had it already.
    pub duplicate: bool,
}

impl From<redrive_bus::Published> for Published {
    fn from(published: redrive_bus::Published) -> Self {
        let redrive_bus::Published { id, subscriptions, duplicate } = published;
        Self { id: id.to_string(), subscriptions, duplicate }
    }
}

/// An event, with what is to be said of it; [`EventBus::event`] makes one.
#[derive(Debug, Clone)]
#[must_use = "nobody gets an event before it is published"]
pub struct NewEvent {
    bus: EventBus,
    topic: String,
    body: Bytes,
    content_type: Option<String>,
    headers: Vec<(String, String)>,
    kind: Option<String>,
    fairness_key: String,
    dedup_key: Option<String>,
}

impl NewEvent {
    pub(super) fn new(bus: EventBus, topic: &str) -> Self {
        Self {
            bus,
            topic: topic.to_owned(),
            body: Bytes::new(),
            content_type: None,
            headers: Vec::new(),
            kind: None,
            fairness_key: String::new(),
            dedup_key: None,
        }
    }

    /// It carries something that can be written as JSON.
    pub fn json<T: Serialize + ?Sized>(self, data: &T) -> Result<Self, Error> {
        let body = serde_json::to_vec(data).map_err(|error| Error::Body(error.to_string()))?;
        Ok(self.body(body).content_type("application/json"))
    }

    /// It carries these bytes.
    pub fn body(self, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// What those are, such as `text/plain`.
    pub fn content_type(self, content_type: impl Into<String>) -> Self {
        Self { content_type: Some(content_type.into()), ..self }
    }

    /// With a header, which subscriptions can ask for.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// With an attribute as CloudEvents knows them, such as `source` or `subject`.
    pub fn attribute(self, name: &str, value: impl Into<String>) -> Self {
        self.header(format!("{ATTRIBUTE_PREFIX}{name}"), value)
    }

    /// What kind of event it is; its topic, where nothing is said.
    pub fn kind(self, kind: impl Into<String>) -> Self {
        Self { kind: Some(kind.into()), ..self }
    }

    /// Whose share of the service it uses.
    pub fn fairness_key(self, key: impl Into<String>) -> Self {
        Self { fairness_key: key.into(), ..self }
    }

    /// Another event with this key is a duplicate, for five minutes, and goes to nobody who had this one.
    pub fn dedup_key(self, key: impl Into<String>) -> Self {
        Self { dedup_key: Some(key.into()), ..self }
    }

    /// Publishes it. It is durable for everybody who subscribed when this returns.
    pub async fn publish(self) -> Result<Published, Error> {
        let bus = self.bus.bus().await?;
        let topic: Topic = self.topic.parse()?;
        let published = bus.publish(&topic, vec![self.into_domain()?]).await?.pop();
        Ok(published.ok_or(BusError::Busy)??.into())
    }

    fn into_domain(self) -> Result<redrive_bus::NewEvent, Error> {
        Ok(redrive_bus::NewEvent {
            body: Body::new(self.body)?,
            content_type: self.content_type.map(ContentType::new).transpose()?.unwrap_or_default(),
            headers: Headers::new(self.headers)?,
            kind: self.kind.as_deref().map(str::parse).transpose()?,
            fairness_key: self.fairness_key.parse()?,
            dedup_key: self.dedup_key.as_deref().map(str::parse).transpose()?,
            request: None,
        })
    }
}

impl EventBus {
    /// Publishes several events, which may be of different topics. Each is durable for everybody who subscribed to it, or
    /// for nobody, and has its own answer, in their order. Where one of them is no event at all, none is published. Where the
    /// store fails in between, the events of earlier topics are published: with dedup keys, all can be published again.
    pub async fn publish_all(
        &self,
        events: impl IntoIterator<Item = NewEvent>,
    ) -> Result<Vec<Result<Published, Error>>, Error> {
        let bus = self.bus().await?;
        let mut batches: Vec<(Topic, Vec<redrive_bus::NewEvent>)> = Vec::new();
        for event in events {
            let topic: Topic = event.topic.parse()?;
            let event = event.into_domain()?;
            match batches.last_mut() {
                Some((last, batch)) if *last == topic => batch.push(event),
                _ => batches.push((topic, vec![event])),
            }
        }
        let mut all = Vec::new();
        for (topic, batch) in batches {
            let published = bus.publish(&topic, batch).await?;
            all.extend(published.into_iter().map(|one| Ok(one?.into())));
        }
        Ok(all)
    }
}
