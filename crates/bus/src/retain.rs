//! Events that a topic keeps, so that they can be replayed: a log for each pattern that retains, oldest first.
//!
//! A record is a byte that says whether more follows, and a part of an event: a length, what the event says as JSON, and its
//! data. An event larger than a record may be is written as several, in one append.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use redrive_core::limits::{BATCH_ITEMS_MAX, REGISTRY_VALUE_BYTES_MAX};
use redrive_core::message::{Body, Headers, MessageId, Spec};
use redrive_core::time::Timestamp;
use redrive_core::topic::Topic;
use redrive_store::{Append, Limit, LogRange, LogRecord, Now};
use serde::{Deserialize, Serialize};

use crate::bus::Bus;
use crate::error::BusError;
use crate::event::NewEvent;
use crate::topic::TopicSettings;

/// What a record of an event that goes on in the next one begins with.
const MORE: u8 = 1;
/// What the last record of an event begins with.
const LAST: u8 = 0;

/// What is written of an event beside its data.
#[derive(Serialize, Deserialize)]
struct Head {
    id: String,
    topic: String,
    content_type: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    key: String,
    headers: Vec<(String, String)>,
}

/// An event that was kept.
#[derive(Debug, Clone)]
pub(crate) struct Retained {
    /// The number of its last record.
    pub(crate) sequence: u64,
    /// When it was published.
    pub(crate) at: Timestamp,
    pub(crate) id: MessageId,
    pub(crate) topic: Topic,
    pub(crate) event: NewEvent,
}

impl Retained {
    /// The message that it is in every queue. A replay is asked for: no dedup key of the past stands in its way.
    pub(crate) fn spec(&self) -> Result<Spec, redrive_core::invalid::Invalid> {
        self.event.spec(&self.topic, self.id)
    }
}

/// The records of an event.
fn records(topic: &Topic, id: MessageId, event: &NewEvent) -> Vec<Bytes> {
    let head = Head {
        id: id.to_string(),
        topic: topic.as_str().to_owned(),
        content_type: event.content_type.as_str().to_owned(),
        kind: event.kind_on(topic).as_str().to_owned(),
        key: event.fairness_key.as_str().to_owned(),
        headers: event.headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
    };
    let head = serde_json::to_vec(&head).expect("plain fields are JSON");
    let mut whole = BytesMut::with_capacity(4 + head.len() + event.body.bytes().len());
    whole.put_u32(u32::try_from(head.len()).expect("headers are bounded"));
    whole.put_slice(&head);
    whole.put_slice(event.body.bytes());
    let parts: Vec<&[u8]> = whole.chunks(REGISTRY_VALUE_BYTES_MAX - 1).collect();
    let last = parts.len().saturating_sub(1);
    let record = |(at, part): (usize, &&[u8])| {
        let mut record = BytesMut::with_capacity(part.len() + 1);
        record.put_u8(if at == last { LAST } else { MORE });
        record.put_slice(part);
        record.freeze()
    };
    parts.iter().enumerate().map(record).collect()
}

/// The event that was written; `None` where it cannot be read.
fn read(mut whole: Bytes, sequence: u64, at: Timestamp) -> Option<Retained> {
    let length = usize::try_from(whole.try_get_u32().ok()?).ok()?;
    let head = (length <= whole.len()).then(|| whole.split_to(length))?;
    let head: Head = serde_json::from_slice(&head).ok()?;
    Some(Retained {
        sequence,
        at,
        id: head.id.parse().ok()?,
        topic: Topic::new(head.topic).ok()?,
        event: NewEvent {
            body: Body::within(whole, usize::MAX).ok()?,
            content_type: head.content_type.parse().ok()?,
            headers: Headers::new(head.headers).ok()?,
            kind: Some(head.kind.parse().ok()?),
            fairness_key: head.key.parse().ok()?,
            dedup_key: None,
            request: None,
        },
    })
}

/// Puts events together from records. What begins with the rest of an event, whose first records were let go, is passed over.
fn gather(records: Vec<LogRecord>) -> Vec<Retained> {
    let mut found = Vec::new();
    let mut whole = BytesMut::new();
    for LogRecord { sequence, at, value } in records {
        let Some((flag, part)) = value.split_first() else { continue };
        whole.extend_from_slice(part);
        if *flag == LAST {
            let whole = std::mem::take(&mut whole).freeze();
            let event = read(whole, sequence, at);
            if event.is_none() {
                tracing::warn!(sequence, "an event that a topic retained cannot be read");
            }
            found.extend(event);
        }
    }
    found
}

impl Bus {
    pub(crate) fn at(&self) -> Now {
        let own = self.broker.store().capabilities().store_clock;
        if own { Now::Store } else { Now::At(self.broker.now()) }
    }

    /// Keeps events for replays.
    pub(crate) async fn retain(
        &self,
        settings: &TopicSettings,
        topic: &Topic,
        events: &[(MessageId, NewEvent)],
    ) -> Result<(), BusError> {
        let log = settings.log();
        let mut batch: Vec<Bytes> = Vec::new();
        for (id, event) in events {
            let records = records(topic, *id, event);
            // The records of one event stand together.
            if batch.len() + records.len() > BATCH_ITEMS_MAX {
                let full = std::mem::take(&mut batch);
                self.broker.store().log_append(self.at(), &log, Append::new(full)?).await?;
            }
            batch.extend(records);
        }
        self.broker.store().log_append(self.at(), &log, Append::new(batch)?).await?;
        Ok(())
    }

    /// Events of a pattern that were kept, behind that record: a few of them, and whether there are no more.
    pub(crate) async fn retained(
        &self,
        settings: &TopicSettings,
        after: u64,
    ) -> Result<(Vec<Retained>, bool), BusError> {
        // Enough for the largest event, and not too many of them at a time.
        let limit = Limit::new(256)?;
        let records = self.broker.store().log_read(&settings.log(), LogRange::After(after), limit).await?;
        let end = records.len() < limit.get();
        Ok((gather(records), end))
    }

    /// The number behind which the records of that time and later are: logs are in order, so it is found by halves.
    pub(crate) async fn retained_since(
        &self,
        settings: &TopicSettings,
        from: Timestamp,
    ) -> Result<u64, BusError> {
        let log = settings.log();
        let first = |after: u64| {
            let log = log.clone();
            async move {
                let found = self.broker.store().log_read(&log, LogRange::After(after), Limit::ONE).await?;
                Ok::<_, BusError>(found.into_iter().next())
            }
        };
        let Some(oldest) = first(0).await? else { return Ok(0) };
        if oldest.at >= from {
            return Ok(0);
        }
        // Behind `low` is a record that is too old, behind `high` is none that is.
        let (mut low, mut high) = (oldest.sequence.saturating_sub(1), oldest.sequence.max(1));
        while first(high).await?.is_some_and(|record| record.at < from) {
            low = high;
            high = high.saturating_mul(2);
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match first(middle).await? {
                Some(record) if record.at < from => low = middle,
                _ => high = middle,
            }
        }
        Ok(high)
    }

    /// Lets go of what topics need not keep any longer.
    pub(crate) async fn trim_retained(&self) {
        let topics: Vec<TopicSettings> = self.view().topics().cloned().collect();
        for settings in topics {
            let Some(retain) = settings.config.retain else { continue };
            let horizon = self.broker.now().minus(retain);
            if let Err(error) = self.broker.store().log_trim(&settings.log(), horizon).await {
                tracing::warn!(%error, topics = %settings.config.pattern, "old events are kept for longer");
            }
        }
    }

    pub(crate) async fn forget_retained(&self, settings: &TopicSettings) -> Result<(), BusError> {
        self.broker.store().log_trim(&settings.log(), Timestamp::MAX).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventType;

    fn event(size: usize) -> NewEvent {
        NewEvent {
            body: Body::within(vec![7; size], usize::MAX).unwrap(),
            headers: Headers::new([("region".to_owned(), "eu".to_owned())]).unwrap(),
            ..NewEvent::default()
        }
    }

    #[test]
    fn events_of_any_size_are_read_as_they_were_written() {
        let topic: Topic = "orders.created".parse().unwrap();
        let id = MessageId::new(Timestamp::from_millis(5), 9);
        let sizes = [0, 1, REGISTRY_VALUE_BYTES_MAX, 1024 * 1024];
        let written: Vec<Bytes> = sizes.iter().flat_map(|size| records(&topic, id, &event(*size))).collect();
        assert!(written.iter().all(|record| record.len() <= REGISTRY_VALUE_BYTES_MAX));
        let record = |(sequence, value): (u64, Bytes)| LogRecord { sequence, at: Timestamp::EPOCH, value };
        let kept: Vec<LogRecord> = (1..).zip(written).map(record).collect();
        let read = gather(kept.clone());
        assert_eq!(read.iter().map(|event| event.event.body.bytes().len()).collect::<Vec<_>>(), sizes);
        for one in &read {
            assert_eq!((one.id, &one.topic), (id, &topic));
            assert_eq!(one.event.headers.get("region"), Some("eu"));
            assert_eq!(one.event.kind.as_ref().map(EventType::as_str), Some("orders.created"));
        }
        // The first record of a large event was let go.
        let cut = gather(kept.into_iter().skip(3).collect());
        assert_eq!(cut.len(), 1, "{cut:?}");
    }
}
