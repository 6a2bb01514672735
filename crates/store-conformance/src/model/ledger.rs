//! What the promises of the design say about the answers of one store, without asking another.

use std::collections::{BTreeMap, BTreeSet};

use redrive_core::lease::LeaseId;
use redrive_core::lifecycle::{ARROWS, Verb};
use redrive_core::message::{Message, MessageId, State};
use redrive_core::policy::Verdict;
use redrive_core::queue::{QueueName, QueueSettings};
use redrive_core::receipt::Claim;
use redrive_core::time::Timestamp;
use redrive_store::Judged;

type Address = (QueueName, MessageId);

/// Where every message is, and in which state.
pub(super) type States = BTreeMap<Address, State>;

/// What the answers so far say about one message.
#[derive(Debug, Clone, Copy)]
struct Known {
    attempts: u32,
    deliveries: u32,
    due: Timestamp,
}

/// What is known from the answers alone: whose lease is current, and what each message has been charged.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    current: BTreeMap<Address, LeaseId>,
    largest: BTreeMap<MessageId, LeaseId>,
    known: BTreeMap<Address, Known>,
}

impl Ledger {
    /// A message was taken in.
    pub(super) fn enqueued(&mut self, queue: &QueueName, id: MessageId, due: Timestamp) {
        self.known.insert((queue.clone(), id), Known { attempts: 0, deliveries: 0, due });
    }

    /// A message was handed out: alone, with a larger token, charged once, not before the time that an earlier
    /// answer named, not too old and not over its cap.
    pub(super) fn granted(
        &mut self,
        message: &Message,
        settings: &QueueSettings,
        now: Timestamp,
    ) -> Result<(), String> {
        let id = message.id();
        let lease = message.lease().ok_or_else(|| format!("{id} was handed out without a lease"))?;
        let address = (message.queue.clone(), id);
        let known = self.known.get_mut(&address).ok_or_else(|| format!("{id} came from nowhere"))?;
        if let Some(other) = self.current.insert(address, lease.id) {
            return Err(format!("{id} has two current leases, {other} and {}", lease.id));
        }
        if let Some(before) = self.largest.insert(id, lease.id).filter(|before| *before >= lease.id) {
            return Err(format!("{id}: lease id {} follows {before}", lease.id));
        }
        let progress = &message.progress;
        if known.due > now {
            return Err(format!("{id} was handed out {} early", known.due.since(now)));
        }
        let charged = Known { attempts: known.attempts + 1, deliveries: known.deliveries + 1, ..*known };
        if (progress.attempts, progress.deliveries) != (charged.attempts, charged.deliveries) {
            return Err(format!("{id} was charged otherwise than once: {progress:?} after {known:?}"));
        }
        *known = charged;
        if progress.expires_at.is_some_and(|expires_at| expires_at <= now) {
            return Err(format!("{id} was handed out after its time to live"));
        }
        let cap = message.spec.max_attempts.or(settings.retry.max_attempts);
        if cap.is_some_and(|cap| progress.attempts > cap.get()) {
            return Err(format!("{id} was handed out for attempt {} of {cap:?}", progress.attempts));
        }
        Ok(())
    }

    /// A receipt was accepted: it must have been the current one.
    pub(super) fn accepted(&mut self, claim: &Claim, ends: bool) -> Result<(), String> {
        let address = (claim.queue.clone(), claim.message);
        if self.current.get(&address) != Some(&claim.lease) {
            let (lease, id) = (claim.lease, claim.message);
            return Err(format!("a receipt of lease {lease} of {id} was accepted; it is not current"));
        }
        if ends {
            self.current.remove(&address);
        }
        Ok(())
    }

    /// A message was judged: it waits until the time named, or died, and may have been moved on.
    pub(super) fn judged(&mut self, judged: &Judged) {
        let address = (judged.queue.clone(), judged.message);
        self.current.remove(&address);
        match (judged.verdict, &judged.moved_to) {
            (Verdict::RetryAt(due, _), _) => self.due(&address, due),
            (Verdict::Dead(_), Some(target)) => {
                self.moved(&judged.queue, judged.message, target, (judged.at, true));
            }
            (Verdict::Dead(_), None) => {}
        }
    }

    /// A message was given back: the attempt is refunded, the delivery is not.
    pub(super) fn released(&mut self, queue: &QueueName, id: MessageId, due: Timestamp) {
        let address = (queue.clone(), id);
        self.current.remove(&address);
        if let Some(known) = self.known.get_mut(&address) {
            known.attempts = known.attempts.saturating_sub(1);
        }
        self.due(&address, due);
    }

    /// A waiting message was given another time.
    pub(super) fn rescheduled(&mut self, queue: &QueueName, id: MessageId, due: Timestamp) {
        self.due(&(queue.clone(), id), due);
    }

    /// A dead message was brought back.
    pub(super) fn redriven(&mut self, queue: &QueueName, id: MessageId, now: Timestamp) {
        let address = (queue.clone(), id);
        if let Some(known) = self.known.get_mut(&address) {
            known.attempts = 0;
        }
        self.due(&address, now);
    }

    /// A message went to another queue; one that was dead starts anew there.
    pub(super) fn moved(
        &mut self,
        from: &QueueName,
        id: MessageId,
        to: &QueueName,
        (now, dead): (Timestamp, bool),
    ) {
        if let Some(mut known) = self.known.remove(&(from.clone(), id)) {
            known.due = if dead { now } else { known.due.max(now) };
            known.attempts = if dead { 0 } else { known.attempts };
            self.known.insert((to.clone(), id), known);
        }
    }

    fn due(&mut self, address: &Address, due: Timestamp) {
        if let Some(known) = self.known.get_mut(address) {
            known.due = due;
        }
    }

    /// A message was taken away, with its lease.
    pub(super) fn discarded(&mut self, queue: &QueueName, id: MessageId) {
        let address = (queue.clone(), id);
        self.current.remove(&address);
        self.known.remove(&address);
    }

    /// A queue was deleted with everything in it.
    pub(super) fn deleted(&mut self, queue: &QueueName) {
        self.current.retain(|(name, _), _| name != queue);
        self.known.retain(|(name, _), _| name != queue);
    }

    /// The leases that are left must be those that the ledger knows.
    pub(super) fn agrees(&self, states: &States) -> Result<(), String> {
        let leased: BTreeSet<&Address> =
            states.iter().filter(|(_, state)| **state == State::Leased).map(|(address, _)| address).collect();
        let known: BTreeSet<&Address> = self.current.keys().collect();
        if leased == known {
            Ok(())
        } else {
            Err(format!("leased are {leased:?}, handed out were {known:?}"))
        }
    }
}

/// Every change of state must be a way along arrows of these verbs, and no other.
pub(super) fn explained(before: &States, after: &States, verbs: &[Verb]) -> Result<(), String> {
    let addresses: BTreeSet<&Address> = before.keys().chain(after.keys()).collect();
    for address in addresses {
        let (from, to) = (before.get(address).copied(), after.get(address).copied());
        if from != to && !reachable(from, to, verbs) {
            return Err(format!("{} went from {from:?} to {to:?}, which {verbs:?} cannot do", address.1));
        }
    }
    Ok(())
}

fn reachable(from: Option<State>, to: Option<State>, verbs: &[Verb]) -> bool {
    let mut seen = BTreeSet::from([from]);
    loop {
        let before = seen.len();
        for arrow in ARROWS.iter().filter(|arrow| verbs.contains(&arrow.verb)) {
            // The ends of a move are in two queues: in each, it is a way out or a way in.
            let ways = match arrow.verb {
                Verb::Move => vec![(arrow.from, None), (None, arrow.to)],
                _ => vec![(arrow.from, arrow.to)],
            };
            for (start, end) in ways {
                if seen.contains(&start) {
                    seen.insert(end);
                }
            }
        }
        if seen.contains(&to) {
            return true;
        }
        if seen.len() == before {
            return false;
        }
    }
}
