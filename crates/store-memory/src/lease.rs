//! lease: ready → leased. Who is served next, in the order of the design: lane, fairness, priority, order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use redrive_core::lease::LeaseId;
use redrive_core::lifecycle::{self, Verb};
use redrive_core::limits::BATCH_BYTES_MAX;
use redrive_core::message::{DeadReason, FairnessKey, Lane, Message, MessageId};
use redrive_core::policy::{RetryLane, Standing, Weight};
use redrive_core::time::Timestamp;
use redrive_store::{
    ExpireRequest, LaneChoice, LeaseRequest, Leased, Limit, Pick, QueueError, QueueNotFound, SweepRequest,
    Swept,
};

use crate::state::{QueueState, State};

/// The place of a message among those of its lane and key.
pub(crate) type Place = (Reverse<u8>, Timestamp, u64);

/// What one lane has to offer: for each key with work, its messages in order, of which the call may take those
/// that pass its filter.
#[derive(Debug, Default)]
struct Offer {
    keys: BTreeMap<FairnessKey, VecDeque<(Place, MessageId)>>,
    /// Keys that have work, whether or not the call may take it, by when their first message became visible.
    active: Vec<(Timestamp, u64, FairnessKey)>,
}

impl Offer {
    fn is_empty(&self) -> bool {
        self.keys.values().all(VecDeque::is_empty)
    }

    /// Takes the first message of a key away.
    fn take(&mut self, key: &FairnessKey) {
        if let Some(waiting) = self.keys.get_mut(key) {
            waiting.pop_front();
        }
    }
}

impl State {
    pub(crate) fn lease(&mut self, now: Timestamp, request: &LeaseRequest) -> Result<Leased, QueueError> {
        request.check()?;
        let swept = self.sweep_before_lease(now, request)?;
        let queue = self.queue_mut(&request.queue)?;
        let picked = if queue.queue.pauses.holds_queue(now) {
            Vec::new()
        } else {
            match request.pick {
                Pick::Fair => queue.pick_fairly(now, request),
                Pick::Probe { avoid } => queue.pick_probe(now, request, avoid).into_iter().collect(),
            }
        };
        let leases = picked.iter().map(|_| self.next_lease()).collect::<Result<Vec<LeaseId>, _>>()?;
        let mut messages = Vec::with_capacity(picked.len());
        for (id, lease) in picked.into_iter().zip(leases) {
            messages.extend(self.hand_out(now, request, id, lease)?);
        }
        let more = self.queue(&request.queue)?.may_have_more(now, request);
        Ok(Leased { at: now, messages, more, swept })
    }

    pub(crate) fn sweep_before_lease(
        &mut self,
        now: Timestamp,
        request: &LeaseRequest,
    ) -> Result<Swept, QueueError> {
        let (queue, limit, seed) = (Some(request.queue.clone()), Limit::LEASE_SETTLES, request.seed);
        let expired = self.expire(now, &ExpireRequest { queue: queue.clone(), limit, error: None, seed })?;
        let too_old = |reason| reason == DeadReason::ExpiredTtl;
        let lapsed = self.lapse_those(now, &SweepRequest { queue, limit }, too_old)?;
        Ok(Swept { expired, lapsed })
    }

    pub(crate) fn hand_out(
        &mut self,
        now: Timestamp,
        request: &LeaseRequest,
        id: MessageId,
        lease: LeaseId,
    ) -> Result<Option<Message>, QueueNotFound> {
        let queue = self.queue_mut(&request.queue)?;
        let Some(message) = queue.messages.get_mut(&id) else {
            return Ok(None);
        };
        let time = lifecycle::lease_time(&queue.settings, message.spec.lease_timeout, request.time);
        lifecycle::lease(&mut message.progress, lease, request.consumer.clone(), time, now);
        queue.totals.count(Verb::Lease);
        Ok(Some(message.clone()))
    }
}

impl QueueState {
    /// Whether the next call could be handed something: a message that this one left, or a lease that is overdue
    /// and was not ended because there are so many.
    pub(crate) fn may_have_more(&self, now: Timestamp, request: &LeaseRequest) -> bool {
        let overdue = |message: &Message| message.lease().is_some_and(|lease| lease.is_overdue(now));
        !self.queue.pauses.holds_queue(now)
            && (self.allowed(now, request).next().is_some() || self.messages.values().any(overdue))
    }

    /// Messages that may be handed out at all, by anyone.
    pub(crate) fn leasable(&self, now: Timestamp) -> impl Iterator<Item = &Message> {
        self.messages.values().filter(move |message| {
            lifecycle::may_lease(&message.progress, &self.terms(message), now)
                && !self.queue.pauses.holds_key(&message.spec.fairness_key, now)
        })
    }

    fn pick_fairly(&mut self, now: Timestamp, request: &LeaseRequest) -> Vec<MessageId> {
        let (serve_fresh, serve_retry) = self.lanes_of(request.lane);
        let mut fresh = self.offer(Lane::Fresh, now, request);
        let mut retry = self.offer(Lane::Retry, now, request);
        let mut retries_left = self.retries_left();
        let mut bytes_left = BATCH_BYTES_MAX;
        let mut picked = Vec::new();
        while picked.len() < request.limit.get() {
            let can_fresh = serve_fresh && !fresh.is_empty();
            let can_retry = serve_retry && retries_left > 0 && !retry.is_empty();
            let mut credit = self.turns.credit;
            let Some(lane) = credit.pick(self.settings.retry_share, can_fresh, can_retry) else {
                break;
            };
            let offer = if lane == Lane::Fresh { &mut fresh } else { &mut retry };
            let Some((key, weight, id)) = self.next_of(lane, offer) else {
                break;
            };
            let bytes = self.messages.get(&id).map_or(0, load);
            if bytes > bytes_left && !picked.is_empty() {
                break;
            }
            bytes_left = bytes_left.saturating_sub(bytes);
            retries_left -= u64::from(lane == Lane::Retry);
            offer.take(&key);
            self.turns.credit = credit;
            self.turns.ring(lane).serve(&key, weight);
            picked.push(id);
        }
        picked
    }

    pub(crate) fn lanes_of(&self, choice: LaneChoice) -> (bool, bool) {
        match choice {
            LaneChoice::Only(lane) => (lane == Lane::Fresh, lane == Lane::Retry),
            LaneChoice::Queue => (true, self.settings.retry_lane == RetryLane::Shared),
        }
    }

    /// How many retries may be handed out before the cap on those in flight; counted from the leases, so that
    /// it cannot leak.
    pub(crate) fn retries_left(&self) -> u64 {
        match self.settings.max_retries_in_flight {
            Some(max) => u64::from(max.get()).saturating_sub(self.retries_in_flight()),
            None => u64::MAX,
        }
    }

    pub(crate) fn retries_in_flight(&self) -> u64 {
        let retries =
            |message: &&Message| message.lease().is_some() && message.progress.lane() == Lane::Retry;
        self.messages.values().filter(retries).count() as u64
    }

    fn offer(&self, lane: Lane, now: Timestamp, request: &LeaseRequest) -> Offer {
        let mut offer = Offer::default();
        let mut ready: Vec<&Message> =
            self.leasable(now).filter(|message| message.progress.lane() == lane).collect();
        ready.sort_unstable_by_key(|message| place(message));
        for message in ready {
            let key = &message.spec.fairness_key;
            offer.active.push((message.progress.visible_at, message.progress.sequence, key.clone()));
            let waiting = offer.keys.entry(key.clone()).or_default();
            if request.filter.takes(&message.spec.kind, &message.spec.source) {
                waiting.push_back((place(message), message.id()));
            }
        }
        offer.active.sort_unstable();
        offer
    }

    /// The message that the lane serves next, with its key, for which nothing was charged yet.
    fn next_of(&mut self, lane: Lane, offer: &mut Offer) -> Option<(FairnessKey, Weight, MessageId)> {
        let ring = self.turns.ring(lane);
        for (_, _, key) in offer.active.drain(..) {
            ring.join(&key);
        }
        let weights = &self.settings.weights;
        let (key, weight) = ring.next(|key| match offer.keys.get(key) {
            None => Standing::Leaves,
            Some(waiting) if waiting.is_empty() => Standing::Passes,
            Some(_) => Standing::Serves(weights.of(key)),
        })?;
        let (_, id) = offer.keys.get(&key)?.front()?;
        let id = *id;
        Some((key, weight, id))
    }

    fn pick_probe(
        &self,
        now: Timestamp,
        request: &LeaseRequest,
        avoid: Option<MessageId>,
    ) -> Option<MessageId> {
        self.leasable(now)
            .filter(|message| request.filter.takes(&message.spec.kind, &message.spec.source))
            .min_by_key(|message| (Some(message.id()) == avoid, message.progress.attempts, place(message)))
            .map(Message::id)
    }
}

pub(crate) fn place(message: &Message) -> Place {
    let progress = &message.progress;
    (Reverse(progress.priority.get()), progress.visible_at, progress.sequence)
}

/// What a message weighs when it is handed out or listed.
pub(crate) fn load(message: &Message) -> usize {
    let checkpoint = message.history.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.bytes().len());
    message.spec.body.bytes().len() + message.spec.headers.size() + checkpoint
}
