//! The span of an attempt: from the lease of a message to whatever ends it.
//!
//! Between the two, what is known of the attempt is kept here, by its lease. It is gone with the process, and an attempt
//! that is settled elsewhere is not traced.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use redrive_core::lease::LeaseId;
use redrive_core::message::{Message, MessageId};
use redrive_core::queue::QueueName;
use redrive_core::time::{Millis, Timestamp};

use super::{Attempted, Failure, HowEnded, Span, TraceParent};
use crate::broker::Broker;

/// An attempt whose lease ended so long ago that it was settled elsewhere, and nobody will tell.
const FORGOTTEN: Millis = Millis::from_secs(60);

/// An attempt that goes on.
#[derive(Debug)]
struct Open {
    context: TraceParent,
    parent: Option<NonZeroU64>,
    attempt: u32,
    leased_at: Timestamp,
    deadline: Timestamp,
}

/// The attempts of one queue. A message may have two for a moment: one that was just settled, and the next.
type OfQueue = BTreeMap<(MessageId, LeaseId), Open>;

/// The attempts that go on.
#[derive(Debug)]
pub(super) struct Attempts {
    queues: BTreeMap<QueueName, OfQueue>,
    count: usize,
    max: usize,
    /// When those that were settled elsewhere were forgotten last.
    cleared: Timestamp,
}

/// Which attempt of a message ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Which {
    /// The one of this lease.
    Lease(LeaseId),
    /// The one with this number, whose lease was taken then.
    Number(u32, Timestamp),
    /// Whichever goes on.
    Current,
}

impl Which {
    fn is(self, lease: LeaseId, open: &Open) -> bool {
        match self {
            Self::Lease(wanted) => lease == wanted,
            Self::Number(attempt, leased_at) => (open.attempt, open.leased_at) == (attempt, leased_at),
            Self::Current => true,
        }
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended<'a> {
    pub(crate) at: Timestamp,
    pub(crate) how: HowEnded,
    pub(crate) failure: Option<Failure<'a>>,
}

/// All leases of a message.
fn leases(message: MessageId) -> std::ops::RangeInclusive<(MessageId, LeaseId)> {
    (message, LeaseId::from_bits(0))..=(message, LeaseId::from_bits(u64::MAX))
}

impl Attempts {
    pub(super) fn new(max: usize) -> Self {
        Self { queues: BTreeMap::new(), count: 0, max, cleared: Timestamp::EPOCH }
    }

    /// Says whether there was room for it.
    fn open(&mut self, queue: &QueueName, key: (MessageId, LeaseId), open: Open) -> bool {
        if self.count >= self.max {
            self.clear(open.leased_at);
        }
        if self.count >= self.max {
            return false;
        }
        if !self.queues.contains_key(queue) {
            self.queues.insert(queue.clone(), OfQueue::new());
        }
        let before = self.queues.get_mut(queue).and_then(|attempts| attempts.insert(key, open));
        self.count += usize::from(before.is_none());
        true
    }

    /// Forgets what was settled elsewhere. It looks at all of them, and so it does not do that often.
    fn clear(&mut self, now: Timestamp) {
        if now.since(self.cleared) < FORGOTTEN {
            return;
        }
        self.cleared = now;
        for attempts in self.queues.values_mut() {
            attempts.retain(|_, open| open.deadline.plus(FORGOTTEN) > now);
        }
        self.queues.retain(|_, attempts| !attempts.is_empty());
        self.count = self.queues.values().map(OfQueue::len).sum();
    }

    fn close(&mut self, queue: &QueueName, message: MessageId, which: Which) -> Option<Open> {
        let attempts = self.queues.get_mut(queue)?;
        let mut found = attempts.range(leases(message)).filter(|((_, lease), open)| which.is(*lease, open));
        let key = *found.next()?.0;
        self.count -= 1;
        attempts.remove(&key)
    }

    fn extend(&mut self, queue: &QueueName, message: MessageId, deadline: Timestamp) {
        let Some(attempts) = self.queues.get_mut(queue) else { return };
        for (_, open) in attempts.range_mut(leases(message)) {
            open.deadline = deadline;
        }
    }

    fn forget(&mut self, queue: &QueueName) {
        let attempts = self.queues.remove(queue);
        self.count -= attempts.map_or(0, |attempts| attempts.len());
    }
}

impl Broker {
    /// Messages are handed out: what the consumer does is a part of the attempt, and so the attempt's context is what the
    /// consumer gets to see.
    pub(crate) fn begin_attempts(&self, messages: &mut [Message]) {
        let Some(traces) = &self.traces else { return };
        let mut untraced = 0;
        let mut attempts = traces.attempts();
        for message in messages {
            let Some(lease) = message.progress.lease() else { continue };
            let parent = TraceParent::of(&message.spec.headers);
            let context = traces.begin(parent, &self.chance);
            if !context.is_sampled() {
                continue;
            }
            let open = Open {
                context,
                parent: parent.map(TraceParent::span_id),
                attempt: message.progress.attempts,
                leased_at: lease.leased_at,
                deadline: lease.deadline,
            };
            if attempts.open(&message.queue, (message.spec.id, lease.id), open) {
                // Where there is no room for it, what the consumer does is not seen as a part of the attempt.
                drop(message.spec.headers.set(TraceParent::HEADER, context.to_string()));
            } else {
                untraced += 1;
            }
        }
        self.metrics.untraced(untraced);
    }

    /// The lease of an attempt goes on.
    pub(crate) fn extend_attempt(&self, queue: &QueueName, message: MessageId, deadline: Timestamp) {
        if let Some(traces) = &self.traces {
            traces.attempts().extend(queue, message, deadline);
        }
    }

    /// Tells the span of an attempt, if it was begun here.
    pub(crate) fn end_attempt(&self, queue: &QueueName, message: MessageId, which: Which, ended: Ended<'_>) {
        let Some(traces) = &self.traces else { return };
        let Some(open) = traces.attempts().close(queue, message, which) else { return };
        let span = Span {
            context: open.context,
            parent: open.parent,
            start: open.leased_at,
            end: ended.at.max(open.leased_at),
        };
        traces.tracing.attempted(Attempted {
            span,
            queue,
            message,
            attempt: open.attempt,
            ended: ended.how,
            failure: ended.failure,
        });
    }

    /// Messages are gone, and whoever works on them will not be heard.
    pub(crate) fn forget_attempts(&self, queue: &QueueName, messages: &[MessageId]) {
        let Some(traces) = &self.traces else { return };
        let mut attempts = traces.attempts();
        for message in messages {
            while attempts.close(queue, *message, Which::Current).is_some() {}
        }
    }

    /// A queue is gone.
    pub(crate) fn forget_attempts_of(&self, queue: &QueueName) {
        if let Some(traces) = &self.traces {
            traces.attempts().forget(queue);
        }
    }
}
