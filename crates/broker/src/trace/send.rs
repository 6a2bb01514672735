//! The span of an enqueue, and the context that the message carries from there on.

use std::num::NonZeroU64;

use redrive_core::limits::BATCH_BYTES_MAX;
use redrive_core::message::Headers;
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::{EnqueueItem, EnqueueOutcome, Item};

use super::{Sent, Span, TraceParent};
use crate::broker::Broker;
use crate::enqueue::NewMessage;

/// A span that ends when its message is in its queue.
#[derive(Debug)]
pub(crate) struct Begun {
    context: TraceParent,
    parent: Option<NonZeroU64>,
    queue: QueueName,
}

impl Broker {
    /// The context of each message's request; nothing at all where there is nothing to trace.
    pub(crate) fn requests_to_trace(&self, messages: &[NewMessage]) -> Vec<Option<TraceParent>> {
        if self.traces.is_none() && messages.iter().all(|message| message.request.is_none()) {
            return Vec::new();
        }
        messages.iter().map(|message| message.request).collect()
    }

    /// Puts the context of its trace into each message, beside which the context of its request stands. Answers a span
    /// for each message whose trace is sampled.
    pub(crate) fn begin_sends(
        &self,
        items: &mut [EnqueueItem],
        requests: &[Option<TraceParent>],
    ) -> Vec<Option<Begun>> {
        if requests.is_empty() {
            return Vec::new();
        }
        let mut room = Room::beside(items);
        let sends = items.iter_mut().zip(requests).map(|(item, request)| {
            let headers = &mut item.draft.spec.headers;
            let Some(traces) = &self.traces else {
                if let Some(context) = request.filter(|_| headers.get(TraceParent::HEADER).is_none()) {
                    room.carry(headers, context);
                }
                return None;
            };
            let parent = TraceParent::of(headers).or(*request);
            if let Some(unsampled) = parent.filter(|parent| !parent.is_sampled()) {
                room.carry(headers, unsampled);
                return None;
            }
            let context = traces.begin(parent, &self.chance);
            room.carry(headers, context);
            let parent = parent.map(TraceParent::span_id);
            context.is_sampled().then(|| Begun { context, parent, queue: item.queue.clone() })
        });
        sends.collect()
    }

    /// Tells the spans of messages that are in their queues now. Those of others never were.
    pub(crate) fn end_sends(&self, sends: &[Option<Begun>], outcomes: &[EnqueueOutcome], start: Timestamp) {
        let Some(traces) = &self.traces else { return };
        let end = self.now();
        for (begun, outcome) in sends.iter().zip(outcomes) {
            let (Some(begun), EnqueueOutcome::Enqueued { id, .. }) = (begun, outcome) else { continue };
            let span = Span { context: begun.context, parent: begun.parent, start, end };
            traces.tracing.sent(Sent { span, queue: &begun.queue, message: *id });
        }
    }
}

/// How many bytes a batch may still grow. What a producer may send must not depend on whether it is traced.
struct Room(usize);

impl Room {
    fn beside(items: &[EnqueueItem]) -> Self {
        Self(BATCH_BYTES_MAX.saturating_sub(items.iter().map(Item::load).sum()))
    }

    /// Puts a context into the headers, if there is room for it.
    fn carry(&mut self, headers: &mut Headers, context: TraceParent) {
        let before = headers.get(TraceParent::HEADER).map_or(0, |old| TraceParent::HEADER.len() + old.len());
        let grows = (TraceParent::HEADER.len() + TraceParent::LENGTH).saturating_sub(before);
        if grows <= self.0 && headers.set(TraceParent::HEADER, context.to_string()).is_ok() {
            self.0 -= grows;
        }
    }
}
