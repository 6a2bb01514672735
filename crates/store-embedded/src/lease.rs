//! lease: ready → leased. Who is served next, in the order of the design: lane, fairness, priority, order.

use redrive_core::lifecycle;
use redrive_core::limits::{BATCH_BYTES_MAX, LEASE_SETTLES_MAX};
use redrive_core::message::{Lane, MessageId};
use redrive_core::policy::{RetryLane, Standing, Weight};
use redrive_core::time::Timestamp;
use redrive_store::{ExpireRequest, LaneChoice, LeaseRequest, Limit, Pick, QueueError, Swept};

use crate::core::Core;
use crate::format::record;
use crate::load::Shot;
use crate::state::entry::Held;
use crate::state::messages::Messages;
use crate::state::queue::QueueState;

/// What a lease call answers, before bodies are read.
pub(crate) struct Leases {
    pub(crate) shots: Vec<Shot>,
    pub(crate) more: bool,
    pub(crate) swept: Swept,
}

/// What a call may take.
struct Wants {
    fresh: bool,
    retry: bool,
    /// One message, from whichever lane.
    probe: bool,
    /// By class; `None` takes all.
    classes: Option<Vec<bool>>,
}

impl Wants {
    fn takes(&self, class: u16) -> bool {
        self.classes.as_ref().is_none_or(|taken| taken.get(usize::from(class)).copied().unwrap_or(false))
    }
}

/// Who is next in a lane.
type Next = (u32, Weight, u32);

impl Core {
    pub(crate) fn lease(&mut self, now: Timestamp, request: &LeaseRequest) -> Result<Leases, QueueError> {
        request.check()?;
        let number = self.number(&request.queue)?;
        let swept = self.sweep_before_lease(now, number, request)?;
        let (queue, messages) = self.parts(number);
        let paused = queue.queue.pauses.holds_queue(now);
        let wants = queue.wants(request);
        let picked = match request.pick {
            _ if paused => Vec::new(),
            Pick::Fair => self.pick_fairly(now, number, request.limit.get(), &wants),
            Pick::Probe { avoid } => queue.pick_probe(messages, now, &wants, avoid).into_iter().collect(),
        };
        let shots = self.hand_out(now, number, request, &picked)?;
        let (queue, messages) = self.parts(number);
        let more = !paused && queue.may_have_more(messages, now, &wants);
        Ok(Leases { shots, more, swept })
    }

    fn sweep_before_lease(
        &mut self,
        now: Timestamp,
        number: u32,
        request: &LeaseRequest,
    ) -> Result<Swept, QueueError> {
        let (queue, messages) = self.parts(number);
        queue.promote(messages, now);
        if queue.turns.resume_at.is_some_and(|resume_at| resume_at <= now) {
            queue.turns.readmit();
        }
        let expire = ExpireRequest {
            queue: Some(request.queue.clone()),
            limit: Limit::LEASE_SETTLES,
            error: None,
            seed: request.seed,
        };
        let expired = self.expire(now, &expire)?;
        let lapsed = self.lapse_old(now, number, LEASE_SETTLES_MAX);
        Ok(Swept { expired, lapsed })
    }

    fn pick_fairly(&mut self, now: Timestamp, number: u32, limit: usize, wants: &Wants) -> Vec<u32> {
        let share = self.queue(number).settings.retry_share;
        let mut retries_left = self.queue(number).retries_left();
        let mut bytes_left = BATCH_BYTES_MAX;
        let mut picked = Vec::new();
        let (mut fresh, mut retry) = (None, None);
        while picked.len() < limit {
            let (queue, messages) = self.parts(number);
            if wants.fresh && fresh.is_none() {
                fresh = queue.next_of(messages, Lane::Fresh, now, wants);
            }
            if wants.retry && retry.is_none() && retries_left > 0 {
                retry = queue.next_of(messages, Lane::Retry, now, wants);
            }
            let mut credit = queue.turns.credit;
            let Some(lane) = credit.pick(share, fresh.is_some(), retry.is_some()) else { break };
            let next = if lane == Lane::Fresh { &mut fresh } else { &mut retry };
            let Some((key, weight, slot)) = next.take() else { break };
            let bytes = self.load_of(slot);
            if bytes > bytes_left && !picked.is_empty() {
                break;
            }
            bytes_left = bytes_left.saturating_sub(bytes);
            if lane == Lane::Retry {
                retries_left -= 1;
            }
            let (queue, messages) = self.parts(number);
            queue.turns.credit = credit;
            queue.turns.ring(lane).serve(&key, weight);
            queue.set_aside(messages, slot);
            picked.push(slot);
        }
        picked
    }

    /// Hands out what was picked, in that order.
    fn hand_out(
        &mut self,
        now: Timestamp,
        number: u32,
        request: &LeaseRequest,
        picked: &[u32],
    ) -> Result<Vec<Shot>, QueueError> {
        let Some(last) = (picked.len() as u64).checked_sub(1) else {
            return Ok(Vec::new());
        };
        self.lease_id(last)?;
        let first = self.lease_id(0)?;
        let settings = &self.queue(number).settings;
        let deadline = |slot: u32| {
            let own = self.messages.extra(slot).and_then(|extra| extra.lease_timeout);
            now.plus(lifecycle::lease_time(settings, own, request.time))
        };
        let deadlines: Vec<Timestamp> = picked.iter().map(|slot| deadline(*slot)).collect();
        let bases = picked.iter().map(|slot| self.messages.at(*slot).at).zip(deadlines.iter().copied());
        record::put_leases(&mut self.journal.frame, &request.consumer, now, first, bases);
        for (slot, deadline) in picked.iter().zip(deadlines) {
            let id = self.lease_id(0)?;
            self.store.leases += 1;
            self.apply_lease(
                *slot,
                Held { id, consumer: request.consumer.clone(), leased_at: now, deadline },
            );
        }
        self.totals(number).add(lifecycle::Verb::Lease, last + 1);
        Ok(self.shots(picked))
    }
}

impl QueueState {
    fn wants(&self, request: &LeaseRequest) -> Wants {
        let probe = matches!(request.pick, Pick::Probe { .. });
        let (fresh, retry) = match request.lane {
            _ if probe => (true, true),
            LaneChoice::Only(lane) => (lane == Lane::Fresh, lane == Lane::Retry),
            LaneChoice::Queue => (true, self.settings.retry_lane == RetryLane::Shared),
        };
        Wants { fresh, retry, probe, classes: self.classes.taken_by(&request.filter) }
    }

    /// How many retries may be handed out before the cap on those in flight; counted from the leases, so that
    /// it cannot leak.
    fn retries_left(&self) -> u64 {
        match self.settings.max_retries_in_flight {
            Some(max) => u64::from(max.get()).saturating_sub(self.retries_in_flight),
            None => u64::MAX,
        }
    }

    /// The message that the lane serves next, with its key, for which nothing was charged yet.
    fn next_of(
        &mut self,
        messages: &mut Messages,
        lane: Lane,
        now: Timestamp,
        wants: &Wants,
    ) -> Option<Next> {
        loop {
            let Self { turns, keys, settings, queue, .. } = self;
            let (mut first, mut paused) = (None, Vec::new());
            let next = turns.ring(lane).next(|key| {
                let found = keys.first(&messages.entries, *key, lane, |class| wants.takes(class));
                if found.is_none() {
                    let any = wants.classes.is_some()
                        && keys.first(&messages.entries, *key, lane, |_| true).is_some();
                    return if any { Standing::Passes } else { Standing::Leaves };
                }
                // Most queues have no key with a pause or a weight: then nobody has to look for one.
                if !queue.pauses.keys.is_empty() && queue.pauses.holds_key(keys.name(*key), now) {
                    paused.push(*key);
                    return Standing::Leaves;
                }
                first = found;
                Standing::Serves(settings.weights.of(keys.name(*key)))
            });
            for key in paused {
                let end = queue.pauses.keys.get(keys.name(key)).and_then(|pause| pause.end());
                turns.resume_at = turns.resume_at.into_iter().chain(end).min();
                turns.paused.push(key);
            }
            let ((key, weight), slot) = (next?, first?);
            if messages.extra(slot).and_then(|extra| extra.expires_at).is_none_or(|at| at > now) {
                return Some((key, weight, slot));
            }
            self.set_aside(messages, slot);
        }
    }

    fn pick_probe(
        &self,
        messages: &Messages,
        now: Timestamp,
        wants: &Wants,
        avoid: Option<MessageId>,
    ) -> Option<u32> {
        let avoid = avoid.map(crate::state::ids::number);
        let takes = |class: u16| wants.takes(class);
        let mut best: Option<((bool, u32), u32)> = None;
        for lane in Lane::ALL {
            for slot in self
                .keys
                .all(&messages.entries, lane, &takes)
                .filter(|slot| self.may_go(messages, *slot, now))
            {
                let entry = messages.at(slot);
                let rank = (Some(entry.id()) == avoid, entry.attempts);
                if best.is_none_or(|(best, _)| rank < best) {
                    best = Some((rank, slot));
                }
                // Nothing is fresher than fresh: a long line need not be walked.
                if rank == (false, 0) {
                    return Some(slot);
                }
            }
        }
        best.map(|(_, slot)| slot)
    }

    fn may_go(&self, messages: &Messages, slot: u32, now: Timestamp) -> bool {
        let old = messages.extra(slot).and_then(|extra| extra.expires_at).is_some_and(|at| at <= now);
        !old && !self.queue.pauses.holds_key(self.keys.name(messages.at(slot).key), now)
    }

    /// Whether the next call could be handed something: a message that this one left, or a lease that is overdue
    /// and was not ended because there are so many.
    fn may_have_more(&mut self, messages: &mut Messages, now: Timestamp, wants: &Wants) -> bool {
        if self.deadlines.first().is_some_and(|(deadline, ..)| *deadline <= now) {
            return true;
        }
        let retry = wants.retry && (wants.probe || self.retries_left() > 0);
        (wants.fresh && self.next_of(messages, Lane::Fresh, now, wants).is_some())
            || (retry && self.next_of(messages, Lane::Retry, now, wants).is_some())
    }
}
