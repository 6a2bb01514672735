//! An event: what a publisher hands over, and the message that it becomes for each subscription.
//!
//! A message keeps what an event says beyond its data in headers, as CloudEvents does in HTTP: `ce-id`, `ce-source` and so on,
//! where the publisher said it, and the topic in [`TOPIC_HEADER`]. The message's id is the event's, in every queue.

use redrive_broker::{NewMessage, TraceParent};
use redrive_core::invalid::Invalid;
use redrive_core::lifecycle::{Draft, When};
use redrive_core::limits::{CLASS_BYTES_MAX, HEADERS_BYTES_MAX};
use redrive_core::message::{
    Body, ContentType, Dedup, DedupKey, FairnessKey, Headers, Message, MessageId, MessageType, Priority,
    Source, Spec, Uniqueness,
};
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_core::topic::Topic;

/// The header that names the topic of an event.
pub(crate) const TOPIC_HEADER: &str = "redrive-topic";
/// The header that says, where handlers run one after another, which subscriptions there were when it was published.
pub(crate) const ORDER_HEADER: &str = "redrive-order";
/// The header that says what type an event is, where its queue can tell no more types apart.
pub(crate) const TYPE_HEADER: &str = "redrive-type";
/// What the headers of attributes begin with.
pub(crate) const ATTRIBUTE_PREFIX: &str = "ce-";
/// What the bus's own headers take at most: a topic, a type, the name of a queue, and a number.
const OWN_BYTES_MAX: usize = 1_024;
/// Headers that publishers do not set by themselves.
const OWN_PREFIX: &str = "redrive-";

/// What kind of event it is: 1 to 128 bytes of text.
pub type EventType = MessageType;

/// An event as a publisher hands it over.
#[derive(Debug, Clone, Default)]
pub struct NewEvent {
    /// What it carries.
    pub body: Body,
    /// What that is.
    pub content_type: ContentType,
    /// String pairs that travel with it; subscriptions can ask for them.
    pub headers: Headers,
    /// What kind of event it is; its topic, where nothing is said.
    pub kind: Option<EventType>,
    /// The tenant whose share of the service it uses.
    pub fairness_key: FairnessKey,
    /// The key that keeps it from being published twice.
    pub dedup_key: Option<DedupKey>,
    /// The trace that the publisher's request is a part of.
    pub request: Option<TraceParent>,
}

impl NewEvent {
    /// Refuses headers that only the bus sets, and those that leave it no room for its own: whatever is refused is refused before
    /// anything is kept.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        Invalid::check_length("headers", self.headers.size(), HEADERS_BYTES_MAX - OWN_BYTES_MAX, "bytes")?;
        if self.headers.iter().any(|(name, _)| name.starts_with(OWN_PREFIX)) {
            return Err(Invalid::unusable("headers", "names that begin with redrive- are the server's own"));
        }
        Ok(())
    }

    /// What kind of event it is on that topic. A topic may be longer than a type, and is cut then.
    pub(crate) fn kind_on(&self, topic: &Topic) -> EventType {
        self.kind.clone().unwrap_or_else(|| {
            let text = topic.as_str();
            EventType::new(text.get(..CLASS_BYTES_MAX).unwrap_or(text)).unwrap_or_default()
        })
    }

    /// Where it came from, as far as consumers can ask for that.
    fn source(&self) -> Source {
        self.headers.get("ce-source").and_then(|source| Source::new(source).ok()).unwrap_or_default()
    }

    /// The message that it is in every queue.
    pub(crate) fn spec(&self, topic: &Topic, id: MessageId) -> Result<Spec, Invalid> {
        let mut headers = self.headers.clone();
        headers.set(TOPIC_HEADER, topic.as_str().to_owned())?;
        let unique = Uniqueness::Window;
        Ok(Spec {
            id,
            body: self.body.clone(),
            content_type: self.content_type.clone(),
            headers,
            kind: self.kind_on(topic),
            source: self.source(),
            fairness_key: self.fairness_key.clone(),
            dedup: self.dedup_key.clone().map(|key| Dedup { key, unique }),
            lease_timeout: None,
            max_attempts: None,
        })
    }
}

/// A message for a queue that says this.
pub(crate) fn message(queue: QueueName, spec: Spec, request: Option<TraceParent>) -> NewMessage {
    let id = Some(spec.id);
    let draft = Draft { spec, priority: Priority::default(), visible: When::Now, expires: None };
    NewMessage { queue, id, draft, idempotency_key: None, request }
}

/// What a message of the bus says, for another queue: the same event, and nothing of how it was dispatched here.
pub(crate) fn copy_of(message: &Message) -> Spec {
    let mut spec = message.spec.clone();
    let own = spec.headers.iter().filter(|(name, _)| *name != ORDER_HEADER);
    let own: Vec<(String, String)> = own.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    if let Ok(headers) = Headers::new(own) {
        spec.headers = headers;
    }
    Spec { max_attempts: None, lease_timeout: None, ..spec }
}

/// An event as a target gets it.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its id, the same at every attempt and for every subscription.
    pub id: MessageId,
    /// What it is about.
    pub topic: String,
    /// What kind of event it is.
    pub kind: EventType,
    /// When it was published.
    pub published_at: Timestamp,
    /// What it carries.
    pub body: Body,
    /// What that is.
    pub content_type: ContentType,
    /// What travels with it, its attributes included.
    pub headers: Headers,
}

impl Event {
    /// The event that a message is.
    pub(crate) fn of(message: &Message) -> Self {
        let spec = &message.spec;
        let kind = spec.headers.get(TYPE_HEADER).and_then(|kind| EventType::new(kind).ok());
        Self {
            id: spec.id,
            topic: spec.headers.get(TOPIC_HEADER).unwrap_or_default().to_owned(),
            kind: kind.unwrap_or_else(|| spec.kind.clone()),
            published_at: message.created_at,
            body: spec.body.clone(),
            content_type: spec.content_type.clone(),
            headers: spec.headers.clone(),
        }
    }

    /// An attribute that the publisher set.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.headers.get(&format!("{ATTRIBUTE_PREFIX}{name}"))
    }

    /// Every attribute that the publisher set, by name.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().filter_map(|(name, value)| Some((name.strip_prefix(ATTRIBUTE_PREFIX)?, value)))
    }

    /// The headers that the publisher set beside attributes.
    pub fn own_headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = |name: &str| !name.starts_with(ATTRIBUTE_PREFIX) && !name.starts_with(OWN_PREFIX);
        self.headers.iter().filter(move |(name, _)| own(name))
    }
}
